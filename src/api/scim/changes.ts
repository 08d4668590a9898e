/** Changes by SCIM: each is an event with the name of the token before it counts, and is reviewed at once. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { jsonText } from '../../model/json-text.ts'
import { ScimError, type ScimType, scimErrorBody } from '../../scim/error.ts'
import type { Context } from '../access/context.ts'
import { type Changes, changesText, record } from '../access/events.ts'
import type { PlannedEvent } from '../collection/resource.ts'
import { reviewed } from '../collection/review.ts'
import { ApiError, ERRORS, type ErrorCode } from '../http/errors.ts'
import { apiErrorOf, isGone } from '../http/failures.ts'
import { scimCallerOf } from './caller.ts'

export const MEDIA_TYPE = 'application/scim+json; charset=utf-8'

export interface Announced {
  code: 'object.create' | 'object.update' | 'object.delete'
  type: 'scimuser' | 'scimgroup'
  /** With the domain. */
  object: string
  changes: Changes
  /** Events of what ends with it. */
  others?: readonly PlannedEvent[]
}

export async function carryOut<T>(
  context: Context,
  request: FastifyRequest,
  { code, type, object, changes, others = [] }: Announced,
  work: () => Promise<T>,
): Promise<T> {
  const { audit } = context.deps
  const fields = {
    user: scimCallerOf(request).name,
    object_type: type,
    object,
    ...(changes.size > 0 && { changes: changesText(changes) }),
  }
  const told: PlannedEvent[] = []
  try {
    for (const event of [{ code, fields }, ...others]) {
      await record(audit, request, event.code, event.fields)
      told.push(event)
    }
    return await work()
  } catch (error) {
    const reason =
      error instanceof ScimError ? (error.scimType ?? String(error.status)) : apiErrorOf(error).code
    for (const event of told)
      await record(audit, request, event.code, { ...event.fields, result: 'failure', reason })
    throw error
  } finally {
    // A change of many members may have been made in part.
    await reviewed(context, request)
  }
}

const TYPES: Partial<Record<ErrorCode, ScimType>> = {
  malformed_body: 'invalidSyntax',
  duplicate: 'uniqueness',
  invalid_field: 'invalidValue',
}

/** Sends an error as RFC 7644 section 3.12 has it. Only the broker's own failures are logged. */
export function answerScimError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const isClients = isGone(request) && error === request.raw.errored
  const known =
    error instanceof ScimError ? error : asScim(isClients ? new ApiError('request_timeout') : error)
  if (known.status === 500) request.log.error({ err: error }, 'the request failed')
  if (known.status === 503 || known.status === 429) reply.header('retry-after', '5')
  if (known.status === 401) reply.header('www-authenticate', 'Bearer error="invalid_token"')
  send(reply.code(known.status), scimErrorBody(known.status, known.scimType, known.message))
}

function asScim(error: unknown): ScimError {
  const known = apiErrorOf(error)
  const words = known.details.map(({ message }) => message)
  const text = error instanceof Error && known.code === 'duplicate' ? error.message : undefined
  const detail =
    known.code === 'authentication_required'
      ? 'send Authorization: Bearer with a token of a domain that is provisioned by SCIM'
      : (text ?? [...words, ERRORS[known.code].description].join('; '))
  return new ScimError(known.status, TYPES[known.code], detail)
}

export function send(reply: FastifyReply, body: object): FastifyReply {
  return reply.type(MEDIA_TYPE).send(jsonText(body))
}
