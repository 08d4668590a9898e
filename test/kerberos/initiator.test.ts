/** Our proof shown to a service, the service's proof, and messages after it. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { context, der, integer, sequence } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { acceptToken } from '../../src/kerberos/acceptor.ts'
import { readApRequest, readAuthenticator } from '../../src/kerberos/exchange.ts'
import { text, time } from '../../src/kerberos/fields.ts'
import { frameOf, KIND, readFirstToken } from '../../src/kerberos/gss.ts'
import { Initiator } from '../../src/kerberos/initiator.ts'
import { MessageTokens } from '../../src/kerberos/message-tokens.ts'
import type { Key } from '../../src/kerberos/messages.ts'
import { ServiceRefusal, UnprovedServiceError } from '../../src/kerberos/refusals.ts'
import { Replays } from '../../src/kerberos/replays.ts'
import type { HeldTicket } from '../../src/kerberos/requests.ts'
import { heldTicket, keyOf, NOW, SERVICE_KEY } from './client.ts'

const options = () => ({
  realm: 'LAB',
  service: 'HTTP',
  keys: [{ realm: 'LAB', components: ['HTTP', 'bastion'], version: 3, key: SERVICE_KEY }],
  replays: new Replays(0),
  now: () => NOW,
})
const initiatorOf = (more: Partial<ConstructorParameters<typeof Initiator>[0]> = {}) =>
  new Initiator({ ticket: heldTicket(), now: () => NOW + 1, ...more })

test('each side is proved, and messages go sealed and signed in both directions', () => {
  const initiator = initiatorOf()
  const { client, answer, tokens: theirs } = acceptToken(initiator.start(), options())
  expect(client).toEqual(['alice'])
  expect(initiator.tokens).toBeUndefined()
  const ours = initiator.step(answer!)
  for (const [from, to] of [
    [ours, theirs],
    [theirs, ours],
    [ours, theirs],
  ] as const) {
    const wrapped = from.wrap(Buffer.from('secret'))
    expect(to.unwrap(wrapped)?.toString()).toBe('secret')
    expect(to.unwrap(wrapped)).toBeUndefined()
    const mic = from.sign(Buffer.from('list'))
    expect(to.isSigned(Buffer.from('tsil'), mic)).toBe(false)
    expect(to.isSigned(Buffer.from('list'), mic)).toBe(true)
  }
  // Our own messages, sent back to us, are not the service's.
  expect(ours.unwrap(ours.wrap(Buffer.from('secret')))).toBeUndefined()
  expect(() => initiator.step(answer!)).toThrow('no token was expected')
})

test('the first token carries flags, bindings and a delegated ticket', () => {
  const ticket = heldTicket()
  const key = { ...ticket.key, bytes: Buffer.from(ticket.key.bytes) }
  const delegated = Buffer.from('KRB-CRED')
  const token = initiatorOf({ ticket, bindings: Buffer.alloc(16, 6), delegated }).start()
  const { checksum, first } = readAuthenticator(readApRequest(readFirstToken(token)).sealed, key)
  expect(first).toBeLessThan(2 ** 30)
  expect(checksum?.type).toBe(0x8003)
  expect(Buffer.from(checksum!.bytes).toString('hex')).toBe(
    `10000000${'06'.repeat(16)}3f000000010008004b52422d43524544`,
  )
  expect(() => initiatorOf({ delegated: Buffer.alloc(65_536) }).start()).toThrow(MalformedError)
})

test('a service that cannot open the ticket, or proves itself to another, is refused', () => {
  const initiator = initiatorOf()
  initiator.start()
  const { answer } = acceptToken(initiatorOf({ now: () => NOW }).start(), options())
  expect(() => initiator.step(answer!)).toThrow(UnprovedServiceError)
  const other: HeldTicket = { ...heldTicket(), key: keyOf(1) }
  const stranger = initiatorOf({ ticket: other })
  stranger.start()
  expect(() => stranger.step(answer!)).toThrow('not by the key of the ticket')
})

test('an error of the service is said with its clock', () => {
  const initiator = initiatorOf()
  const error = der(
    0x7e,
    sequence(
      context(0, integer(5)),
      context(1, integer(30)),
      context(4, time(NOW + 400_000)),
      context(5, integer(0)),
      context(6, integer(37)),
      context(9, text('LAB')),
    ),
  )
  initiator.start()
  const step = () => initiator.step(frameOf(KIND.ERROR, error))
  expect(step).toThrow(ServiceRefusal)
  expect(step).toThrow('error 37 (its clock is 400 s ahead of ours)')
})

test('keys are wiped at the end', () => {
  const ticket = heldTicket()
  const initiator = initiatorOf({ ticket })
  const { answer } = acceptToken(initiator.start(), options())
  initiator.step(answer!)
  expect(ticket.key.bytes).toEqual(Buffer.alloc(32))
  const unproved = heldTicket()
  initiatorOf({ ticket: unproved }).close()
  expect(unproved.key.bytes).toEqual(Buffer.alloc(32))
})

const pair = (key: Key = keyOf(4)): [MessageTokens, MessageTokens] => [
  new MessageTokens({ side: 'initiator', key, isAcceptorKey: true, first: { own: 5, peer: 0xffffffff } }),
  new MessageTokens({ side: 'acceptor', key, isAcceptorKey: true, first: { own: 0xffffffff, peer: 5 } }),
]

test.each([17, 18, 19, 20])(
  'encryption type %i: a rotated message is taken, and numbers go past 32 bits',
  (number) => {
    const [ours, theirs] = pair(keyOf(4, number))
    for (const rotation of [0, 1, 28, 60, 65_535]) {
      const whole = theirs.wrap(Buffer.from('secret of the target'))
      const body = whole.subarray(16)
      const at = body.length - (rotation % body.length)
      whole.writeUInt16BE(rotation, 6)
      const rotated = Buffer.concat([whole.subarray(0, 16), body.subarray(at), body.subarray(0, at)])
      expect(ours.unwrap(rotated)?.toString()).toBe('secret of the target')
    }
  },
)

test('bytes without a meaning, as some peers add them, are cut off', () => {
  const key = keyOf(4)
  const [ours] = pair(key)
  const header = Buffer.from('050407ff0003000000000000ffffffff', 'hex')
  const sealed = (extra: number, inner: Buffer) =>
    Buffer.concat([header, key.type.encrypt(key.bytes, 22, Buffer.concat([Buffer.alloc(extra, 1), inner]))])
  // More of them than the message has, and a header that is not the sealed one.
  expect(ours.unwrap(sealed(2, header))).toBeUndefined()
  expect(ours.unwrap(sealed(5, Buffer.alloc(16)))).toBeUndefined()
  expect(ours.unwrap(sealed(5, header))).toEqual(Buffer.from([1, 1]))
})

test('altered, cut, repeated and left out messages are refused, and do no harm to the next ones', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 255 }), fc.boolean(), (at, change, isMic) => {
      const [ours, theirs] = pair()
      const plain = Buffer.from('message')
      const token = isMic ? theirs.sign(plain) : theirs.wrap(plain)
      const take = (bytes: Uint8Array) =>
        isMic ? ours.isSigned(plain, bytes) : ours.unwrap(bytes)?.equals(plain) === true
      const altered = Buffer.from(token)
      // The rotation is not signed: a whole turn changes nothing.
      altered[[6, 7].includes(at % token.length) ? 5 : at % token.length]! ^= change
      expect(take(altered)).toBe(false)
      expect(take(token.subarray(0, at % token.length))).toBe(false)
      expect(take(isMic ? theirs.sign(plain) : theirs.wrap(plain))).toBe(false)
      expect(take(token)).toBe(true)
      expect(take(token)).toBe(false)
    }),
    { numRuns: 200 },
  )
})
