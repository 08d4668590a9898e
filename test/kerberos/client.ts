/** A client's first token with a ticket made of the service's key, as a KDC would give it; each part can be altered. */
import { Buffer } from 'node:buffer'
import { context, der, integer, octets, sequence } from '../../proxies/bytes/der.ts'
import { encryptionType } from '../../src/kerberos/encryption.ts'
import { applicationTag, flags, text, time } from '../../src/kerberos/fields.ts'
import { KERBEROS_OID } from '../../src/kerberos/gss.ts'
import { encrypted, type Key, principal, USAGE } from '../../src/kerberos/messages.ts'
import type { HeldTicket } from '../../src/kerberos/requests.ts'

export const keyOf = (byte: number, number = 18): Key => {
  const type = encryptionType(number)!
  return { type, bytes: Buffer.alloc(type.keyBytes, byte) }
}
export const SERVICE_KEY = keyOf(9)
export const SESSION_KEY = keyOf(7)
export const NOW = Date.UTC(2026, 10, 24, 12)

export interface Shown {
  realm?: string
  /** Realm of the client, if another one. */
  clientRealm?: string
  client?: string[]
  prover?: string[]
  service?: string[]
  key?: Key
  version?: number
  session?: Key
  subkey?: Key
  /** Milliseconds since the epoch. */
  made?: number
  begin?: number
  end?: number
  ticketFlags?: number
  options?: number
  gssFlags?: number
  checksumType?: number
  micros?: number
  /** A delegated KRB-CRED, and the flag that says so. */
  delegated?: Uint8Array
}

const keyField = (one: Key) => sequence(context(0, integer(one.type.number)), context(1, octets(one.bytes)))

/** Builds a ticket as the KDC would. */
function ticketOf(shown: Shown): Buffer {
  const {
    realm = 'LAB',
    clientRealm = realm,
    client = ['alice'],
    service = ['HTTP', 'bastion'],
    key = SERVICE_KEY,
    version = 3,
    session = SESSION_KEY,
    begin = NOW - 1000,
    end = NOW + 600_000,
    ticketFlags = 0,
  } = shown
  const part = der(
    applicationTag(3),
    sequence(
      context(0, flags(ticketFlags)),
      context(1, keyField(session)),
      context(2, text(clientRealm)),
      context(3, principal(1, client)),
      context(4, sequence(context(0, integer(1)), context(1, octets(Buffer.alloc(0))))),
      context(5, time(begin)),
      context(7, time(end)),
    ),
  )
  return der(
    applicationTag(1),
    sequence(
      context(0, integer(5)),
      context(1, text(realm)),
      context(2, principal(2, service)),
      context(
        3,
        sequence(
          context(0, integer(key.type.number)),
          context(1, integer(version)),
          context(2, octets(key.type.encrypt(key.bytes, USAGE.TICKET, part))),
        ),
      ),
    ),
  )
}

/** A ticket as its client holds it. */
export function heldTicket(shown: Shown = {}): HeldTicket {
  const key = { ...SESSION_KEY, bytes: Buffer.from(SESSION_KEY.bytes) }
  const { realm = 'LAB', client = ['alice'] } = shown
  return { realm, client, ticket: ticketOf(shown), key }
}

/** Builds a KRB-CRED with the ticket of `held`, sealed by the key. */
export function credOf(held: HeldTicket, key: Key, endTime = NOW + 600_000): Buffer {
  const { realm, client, ticket } = held
  const info = sequence(
    context(0, keyField(held.key)),
    context(1, text(realm)),
    context(2, principal(1, client)),
    context(6, time(endTime)),
    context(8, text(realm)),
    context(9, principal(2, ['krbtgt', realm])),
  )
  const part = der(applicationTag(29), sequence(context(0, sequence(info))))
  return der(
    applicationTag(22),
    sequence(
      context(0, integer(5)),
      context(1, integer(22)),
      context(2, sequence(ticket)),
      context(3, encrypted(key, USAGE.CRED, part)),
    ),
  )
}

export function firstToken(shown: Shown = {}): Buffer {
  const {
    realm = 'LAB',
    clientRealm = realm,
    client = ['alice'],
    prover = client,
    session = SESSION_KEY,
    subkey,
    made = NOW,
    options = 0,
    gssFlags = 2,
    checksumType = 0x8003,
    micros = 5,
    delegated,
  } = shown
  const head = Buffer.alloc(24)
  head.writeUInt32LE(16)
  head.writeUInt32LE(delegated ? gssFlags | 1 : gssFlags, 20)
  const option = Buffer.from([1, 0, (delegated?.length ?? 0) & 255, (delegated?.length ?? 0) >> 8])
  const checksum = delegated ? Buffer.concat([head, option, delegated]) : head
  const authenticator = der(
    applicationTag(2),
    sequence(
      context(0, integer(5)),
      context(1, text(clientRealm)),
      context(2, principal(1, prover)),
      context(3, sequence(context(0, integer(checksumType)), context(1, octets(checksum)))),
      context(4, integer(micros)),
      context(5, time(made)),
      ...(subkey ? [context(6, keyField(subkey))] : []),
    ),
  )
  const request = der(
    applicationTag(14),
    sequence(
      context(0, integer(5)),
      context(1, integer(14)),
      context(2, flags(options)),
      context(3, ticketOf(shown)),
      context(4, encrypted(session, USAGE.AP_AUTHENTICATOR, authenticator)),
    ),
  )
  return der(0x60, KERBEROS_OID, Buffer.from([1, 0]), request)
}
