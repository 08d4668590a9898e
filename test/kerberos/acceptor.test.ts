/** Tickets shown to us, taken and refused, and signatures under their keys. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { buildInit, buildMechanismList, parseResponse, STATE } from '../../proxies/bytes/spnego.ts'
import { acceptToken, TicketRefusal } from '../../src/kerberos/acceptor.ts'
import { IntegrityError } from '../../src/kerberos/encryption.ts'
import { Fields } from '../../src/kerberos/fields.ts'
import { KERBEROS_OID } from '../../src/kerberos/gss.ts'
import type { KeytabEntry } from '../../src/kerberos/keytab.ts'
import { decrypted, readSealed, USAGE } from '../../src/kerberos/messages.ts'
import { acceptNegotiate } from '../../src/kerberos/negotiate.ts'
import { Replays } from '../../src/kerberos/replays.ts'
import { firstToken, keyOf, NOW, SERVICE_KEY, SESSION_KEY, type Shown } from './client.ts'

const entry: KeytabEntry = { realm: 'LAB', components: ['HTTP', 'bastion'], version: 3, key: SERVICE_KEY }
const optionsOf = (now = NOW, replays = new Replays(0)) => ({
  realm: 'LAB',
  service: 'HTTP',
  keys: [entry],
  replays,
  now: () => now,
})

test('a ticket says its client, and the answer proves that we have opened it', () => {
  const { client, answer } = acceptToken(firstToken(), optionsOf())
  expect(client).toEqual(['alice'])
  // Frame and identifier have 17 bytes.
  const reply = Fields.ofMessage(answer!.subarray(15), 15, 'reply')
  const part = decrypted(readSealed(reply.sequence(2)), SESSION_KEY, USAGE.AP_REP)
  const echoed = Fields.ofMessage(part, 27, 'part')
  expect([echoed.time(0), echoed.uint32(1)]).toEqual([NOW, 5])
})

test('nothing is answered to a client that asks for no proof', () => {
  expect(acceptToken(firstToken({ gssFlags: 0 }), optionsOf()).answer).toBeUndefined()
  expect(acceptToken(firstToken({ gssFlags: 0, options: 1 << 29 }), optionsOf()).answer).toBeDefined()
})

const HOUR = 3_600_000
const REFUSED: [string, Shown, string][] = [
  ['of another service', { service: ['host', 'bastion'] }, 'a ticket for HTTP/…@LAB was expected'],
  ['of another realm', { realm: 'EVIL' }, 'got one for HTTP/bastion@EVIL'],
  ['of a client of another realm', { clientRealm: 'EVIL' }, 'a client of LAB was expected, got one of EVIL'],
  ['of an older key', { version: 2 }, 'key version 2 .* keytab has 3'],
  ['of a service that the keytab lacks', { service: ['HTTP', 'other'] }, 'no such key'],
  ['of an old encryption type', { key: keyOf(9, 17) }, 'encryption type 17; the keytab has no such key'],
  ['between users', { options: 1 << 30 }, 'between users'],
  ['of another client', { prover: ['mallory'] }, 'another client than its proof'],
  ['with a proof of yesterday', { made: NOW - 301_000 }, "client's clock is 301 s behind ours"],
  ['with a proof of tomorrow', { made: NOW + 302_000 }, "client's clock is 302 s ahead of ours"],
  ['that has expired', { end: NOW - 301_000 }, 'has expired, or is not valid yet'],
  ['of tomorrow', { begin: NOW + HOUR }, 'has expired, or is not valid yet'],
  ['that is not valid yet', { ticketFlags: 1 << 24 }, 'has expired, or is not valid yet'],
]
test.each(REFUSED)('a ticket %s is refused', (_case, shown, message) => {
  expect(() => acceptToken(firstToken(shown), optionsOf())).toThrow(TicketRefusal)
  expect(() => acceptToken(firstToken(shown), optionsOf())).toThrow(new RegExp(message))
})

test('a ticket or proof under another key, and one without the checksum of the GSS-API, are refused', () => {
  expect(() => acceptToken(firstToken({ key: keyOf(8) }), optionsOf())).toThrow(IntegrityError)
  expect(() => acceptToken(firstToken({ checksumType: 16 }), optionsOf())).toThrow(MalformedError)
})

test('a proof is taken once, and forgotten only when its time is past', () => {
  const replays = new Replays(0, { maxKept: 3, maxOfClient: 2 })
  const token = firstToken({ made: NOW + 300_000, micros: 0 })
  const take = (bytes: Uint8Array, now = NOW) => acceptToken(bytes, optionsOf(now, replays)).client
  expect(take(token)).toEqual(['alice'])
  expect(() => take(token)).toThrow('shown before')
  expect(() => take(token, NOW + 600_000)).toThrow('shown before')
  expect(replays.size).toBe(1)
  expect(() => take(token, NOW + 600_001)).toThrow('clock is 300 s behind')
})

test('a client that floods takes its own share only, and no proof is forgotten for new ones', () => {
  const replays = new Replays(0, { maxKept: 3, maxOfClient: 2 })
  const take = (client: string, now = NOW) => {
    const token = firstToken({ client: [client], made: now, end: NOW + HOUR })
    acceptToken(token, optionsOf(now, replays))
    return token
  }
  const first = take('alice')
  take('alice')
  expect(() => take('alice')).toThrow('too many')
  take('bob')
  expect(() => take('carol')).toThrow('too many')
  expect(() => acceptToken(first, optionsOf(NOW, replays))).toThrow('shown before')
  take('alice', NOW + 600_001)
  expect(replays.size).toBe(1)
})

test('a proof from before the start is refused: it may have been taken then', () => {
  expect(() => acceptToken(firstToken({ made: NOW - 1000 }), optionsOf(NOW, new Replays(NOW)))).toThrow(
    'before our start',
  )
})

test.each([
  ['the key of the ticket', undefined],
  ['the key of the client', keyOf(5, 19)],
])('signatures are judged under %s', (_case, subkey) => {
  const accepted = acceptToken(firstToken(subkey ? { subkey } : {}), optionsOf())
  const key = subkey ?? SESSION_KEY
  const message = Buffer.from('session and user')
  const micOf = (head: number[], usage = 25, number = 0) => {
    const header = Buffer.from([...head, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, number])
    return Buffer.concat([header, key.type.checksum(key.bytes, usage, Buffer.concat([message, header]))])
  }
  const mic = micOf([4, 4, 0])
  const { tokens } = accepted
  expect(tokens.isSigned(Buffer.from('session and root'), mic)).toBe(false)
  expect(tokens.isSigned(message, micOf([4, 4, 1]))).toBe(false)
  expect(tokens.isSigned(message, micOf([4, 4, 0], 23))).toBe(false)
  for (const end of [0, 8, 16, mic.length - 1])
    expect(tokens.isSigned(message, mic.subarray(0, end))).toBe(false)
  expect(tokens.isSigned(message, mic)).toBe(true)
  expect(tokens.isSigned(message, mic)).toBe(false)
  const next = micOf([4, 4, 0], 25, 1)
  accepted.close()
  expect(tokens.isSigned(message, next)).toBe(false)
})

const WINDOWS = Buffer.from('06092a864882f712010202', 'hex')
const NTLM = Buffer.from('060a2b06010401823702020a', 'hex')
test('SPNEGO is taken where Kerberos is the first choice', () => {
  for (const list of [[KERBEROS_OID], [WINDOWS, KERBEROS_OID, NTLM]]) {
    const { client, answer } = acceptNegotiate(buildInit(buildMechanismList(list), firstToken()), optionsOf())
    const { state, mechanism, token } = parseResponse(answer)
    expect([client, state, mechanism]).toEqual([['alice'], STATE.COMPLETED, list[0]])
    expect(token).toBeDefined()
  }
  for (const list of [[NTLM, KERBEROS_OID], []])
    expect(() => acceptNegotiate(buildInit(buildMechanismList(list), firstToken()), optionsOf())).toThrow(
      'as the first choice',
    )
})

test('altered tokens end with the errors of the acceptor, and sign no one in', () => {
  const bytes = buildInit(buildMechanismList([KERBEROS_OID]), firstToken())
  fc.assert(
    fc.property(
      fc.nat(bytes.length - 1),
      fc.integer({ min: 1, max: 255 }),
      fc.nat(bytes.length),
      (at, value, end) => {
        const copy = Buffer.from(bytes)
        copy[at] = copy[at]! ^ value
        try {
          // Bytes outside the encrypted parts may be spelled in other ways: the client stays the same.
          expect(acceptNegotiate(copy.subarray(0, end), optionsOf()).client).toEqual(['alice'])
          expect(end).toBe(bytes.length)
        } catch (error) {
          const known = [MalformedError, IntegrityError, TicketRefusal]
          if (!known.some((one) => error instanceof one)) throw error
        }
      },
    ),
    { numRuns: 400 },
  )
  expect(() => acceptNegotiate(Buffer.alloc(70_000), optionsOf())).toThrow('at most 65536')
})
