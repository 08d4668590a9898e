/** A ticket that a client delegates beside its own (KRB-CRED, RFC 4120 section 5.8): by it we act for the client. */
import { Buffer } from 'node:buffer'
import { TAG } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { IntegrityError } from './encryption.ts'
import { Fields, readAll } from './fields.ts'
import {
  decrypted,
  type Key,
  MESSAGE,
  PART,
  readKey,
  readSealed,
  readTicket,
  requireHead,
  USAGE,
} from './messages.ts'
import type { HeldTicket } from './requests.ts'
import { isSame } from './tickets.ts'

const WHAT = 'Kerberos KRB-CRED'

export interface Delegated extends HeldTicket {
  /** Milliseconds since the epoch. */
  endTime: number
}

/**
 * Returns the first ticket of its client (TGT) in a KRB-CRED, or undefined if there is none that can be used: it is
 * malformed, of another client, sealed by another key, or its own key is of a type that is not spoken. What the client
 * proves does not rest on it. `keys`: those by which it may be sealed.
 */
export function readDelegated(
  bytes: Uint8Array,
  keys: readonly Key[],
  client: { realm: string; client: readonly string[] },
): Delegated | undefined {
  try {
    const message = Fields.ofMessage(bytes, MESSAGE.CRED, WHAT)
    requireHead(message, 0, MESSAGE.CRED, WHAT)
    const tickets = message.list(2)
    const [ticket] = readAll(tickets, WHAT, () => tickets.any().whole)
    const sealed = readSealed(message.sequence(3))
    const plain = opened(sealed, keys)
    try {
      const list = Fields.ofMessage(plain, PART.ENC_CRED, WHAT).list(0)
      const [info] = readAll(list, WHAT, () => new Fields(list.take(TAG.SEQUENCE), WHAT))
      return ticket && info && held(ticket, info, client)
    } finally {
      plain.fill(0)
    }
  } catch (error) {
    if (error instanceof MalformedError || error instanceof IntegrityError) return undefined
    throw error
  }
}

/** @throws MalformedError, IntegrityError */
function opened(sealed: ReturnType<typeof readSealed>, keys: readonly Key[]): Buffer {
  for (const key of keys) {
    try {
      return decrypted(sealed, key, USAGE.CRED)
    } catch (error) {
      if (!(error instanceof MalformedError || error instanceof IntegrityError)) throw error
    }
  }
  throw new IntegrityError()
}

/** @throws MalformedError */
function held(
  ticket: Uint8Array,
  info: Fields,
  { realm, client }: { realm: string; client: readonly string[] },
): Delegated | undefined {
  const { service, realm: issuer } = readTicket(ticket)
  const isOwn = info.text(1) === realm && isSame(info.name(2), client)
  if (!isOwn || issuer !== realm || !isSame(service, ['krbtgt', realm])) return undefined
  const endTime = info.time(6)
  return { realm, client: [...client], ticket: Buffer.from(ticket), key: readKey(info.sequence(0)), endTime }
}
