/**
 * Fields that proxies may set in events, by code. The broker sets the actor, the client's address and the
 * target from what it knows of the session: a proxy that sends any of these is compromised or defective.
 */
import { EVENTS } from '../audit/events/catalogue.ts'
import { cleanValue } from '../audit/events/clean.ts'
import { type EventField, type EventFields, NUMERIC_FIELDS } from '../audit/events/fields.ts'
import type { ProxyEventCode, ProxyField } from '../contract/gate.ts'

/** Made exhaustive by its type. */
const CODES: Readonly<Record<ProxyEventCode, true>> = {
  'session.redirect': true,
  'session.fallback': true,
  'channel.open': true,
  'channel.denied': true,
  'channel.unrecorded': true,
  command: true,
  'file.transfer': true,
  clipboard: true,
  'file.denied': true,
  'file.failed': true,
  // Only by a rule of the session, which the proxy applies.
  'session.kill': true,
}

/** Made exhaustive by its type. */
const OF_PROXIES: Readonly<Record<ProxyField, true>> = {
  subprotocol: true,
  result: true,
  reason: true,
  object: true,
  path: true,
  direction: true,
  size: true,
  sha256: true,
  format: true,
  destination: true,
  confidence: true,
  rule: true,
}

/** A proxy sent a code, a field or a type that it may not send. */
export class ForeignFieldError extends Error {
  override readonly name = 'ForeignFieldError'
}

/** The fields of the catalogue that a proxy may set in events of this code. */
export function fieldsOfProxy(code: ProxyEventCode): readonly EventField[] {
  const fields: readonly EventField[] = EVENTS[code].fields
  return fields.filter((field) => Object.hasOwn(OF_PROXIES, field))
}

/**
 * Bounds and cleans the fields that a proxy sent.
 * @throws ForeignFieldError for a code or a field that proxies may not set, and for a value of another type
 */
export function proxyFields(code: string, fields: Readonly<Record<string, unknown>>): EventFields {
  if (!Object.hasOwn(CODES, code)) throw new ForeignFieldError(`a proxy does not report ${cleanValue(code)}`)
  const allowed = fieldsOfProxy(code as ProxyEventCode)
  const said: EventFields = {}
  for (const [name, value] of Object.entries(fields)) {
    const field = allowed.find((one) => one === name)
    if (field === undefined) {
      throw new ForeignFieldError(`a proxy does not say ${cleanValue(name)} in ${code}`)
    }
    if (value === undefined) continue
    const isNumeric = NUMERIC_FIELDS.some((one) => one === field)
    if (isNumeric && typeof value === 'number' && Number.isFinite(value)) said[field] = value
    else if (!isNumeric && typeof value === 'string') said[field] = cleanValue(value)
    else throw new ForeignFieldError(`expected ${isNumeric ? 'a number' : 'text'} as ${field} of ${code}`)
  }
  return said
}
