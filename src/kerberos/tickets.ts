/** Tickets for a service of ours, opened by the keys of a keytab. */
import { IntegrityError } from './encryption.ts'
import type { KeytabEntry } from './keytab.ts'
import { readTicketPart, type Ticket, type TicketPart } from './messages.ts'

/** Milliseconds by which clocks may differ, as KDCs have it. */
export const SKEW_MS = 300_000

/**
 * Returns the keys that a ticket for this service may be sealed with; `flaw`, for administrators, if there are none.
 */
export function keysOf(
  { realm, service }: { realm: string; service: readonly string[] },
  keys: readonly KeytabEntry[],
  { sealed: { type, version } }: Ticket,
): { fitting: KeytabEntry[]; flaw?: string } {
  const own = keys.filter(
    (one) => one.realm === realm && isSame(one.components, service) && one.key.type.number === type,
  )
  // A keytab keeps a version by its lowest byte where it is an old one.
  const fitting = own.filter((one) => version === undefined || (one.version & 0xff) === (version & 0xff))
  if (fitting.length > 0) return { fitting }
  const versions = own.map((one) => one.version).join(', ') || 'no such key'
  const flaw = `the ticket for ${service.join('/')}@${realm} is of key version ${version ?? 'unknown'} and encryption type ${type}; the keytab has ${versions}: export the keytab again`
  return { fitting, flaw }
}

/** Returns the content of a ticket, or undefined if no key opens it. @throws MalformedError */
export function openTicket(ticket: Ticket, keys: readonly KeytabEntry[]): TicketPart | undefined {
  for (const { key } of keys) {
    try {
      return readTicketPart(ticket, key)
    } catch (error) {
      if (!(error instanceof IntegrityError)) throw error
    }
  }
  return undefined
}

export const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((one, at) => one === b[at])
