/** Audit events of the API. No event, no action (invariant 2): the action waits for its event. */
import { isDeepStrictEqual } from 'node:util'
import type { Audit, EventCode } from '../../audit/events/catalogue.ts'
import type { EventFields } from '../../audit/events/fields.ts'
import { wordsOfFullDisk } from '../../gate/away.ts'
import { ApiError } from '../http/errors.ts'
import { MAX_CHANGE_VALUE, MAX_CHANGES } from '../http/limits.ts'
import type { ApiRequest, Caller } from './caller.ts'

const SECRET = '[secret]'

/**
 * Resolves when the event is in the audit log.
 * @throws ApiError `audit_unavailable` if it cannot be written
 */
export async function record(
  audit: Audit,
  request: ApiRequest,
  code: EventCode,
  fields: EventFields,
): Promise<void> {
  try {
    await audit.record(code, { ...clientOf(request), ...fields })
  } catch (error) {
    request.log.error({ err: error, code }, 'the audit log cannot be written')
    const message = wordsOfFullDisk(error)
    throw new ApiError('audit_unavailable', message === undefined ? [] : [{ message }])
  }
}

/** Returns the fields of the actor. */
export function actor(caller: Caller): EventFields {
  const { name, profile, key } = caller
  return { user: name, profile, ...(key && { api_key: key.keyName }) }
}

/** Returns the client's address, or an empty one if the connection has closed. */
export function addressOf({ source }: ApiRequest): string {
  return source.address ?? ''
}

function clientOf({ source: { address, port } }: ApiRequest): EventFields {
  return {
    ...(address === undefined ? {} : { client_ip: address }),
    ...(port === undefined ? {} : { client_port: port }),
  }
}

/** Name of a field → its value before and after. */
export type Changes = Map<string, [before: unknown, after: unknown]>

/**
 * Returns the changes that a body makes to an object as the API shows it. `secrets` are write-only fields:
 * they always count as changed, and are masked.
 */
export function changesOf(
  before: Readonly<Record<string, unknown>>,
  body: Readonly<Record<string, unknown>>,
  secrets: readonly string[],
): Changes {
  const changes: Changes = new Map()
  for (const [field, after] of Object.entries(body)) {
    if (secrets.includes(field)) changes.set(field, [SECRET, SECRET])
    else if (!isDeepStrictEqual(before[field], after)) changes.set(field, [before[field], after])
  }
  return changes
}

/** Formats `{"field":[old,new],…}` for the event, cut to a length that every sink accepts. */
export function changesText(changes: Changes): string {
  const shown = [...changes].map(([field, [before, after]]) => [field, [shorten(before), shorten(after)]])
  const text = JSON.stringify(Object.fromEntries(shown))
  return text.length > MAX_CHANGES ? `${text.slice(0, MAX_CHANGES - 1)}…` : text
}

function shorten(value: unknown): unknown {
  const text = JSON.stringify(value) ?? 'null'
  return text.length > MAX_CHANGE_VALUE ? `${text.slice(0, MAX_CHANGE_VALUE - 1)}…` : (value ?? null)
}
