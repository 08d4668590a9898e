/** Packets and bodies of TACACS+: for any bytes a message or the one error, and a body comes back as it was. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  readAccountingReply,
  readAuthenticationReply,
  readAuthorizationReply,
} from '../../src/identity/methods/tacacs/messages.ts'
import {
  encodePacket,
  HEADER_BYTES,
  MAX_BODY,
  obscure,
  readHeader,
  TacacsError,
} from '../../src/identity/methods/tacacs/packet.ts'
import { personOf } from '../../src/identity/methods/tacacs/person.ts'
import { shown } from '../../src/identity/methods/words.ts'
import { times } from '../times.ts'

const RUNS = { numRuns: times(2000, 200_000) }
const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))

function sane<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    expect(error).toBeInstanceOf(TacacsError)
    return undefined
  }
}

const header = fc.record({
  type: fc.constantFrom('authentication' as const, 'authorization' as const, 'accounting' as const),
  minor: fc.constantFrom(0, 1),
  sequence: fc.nat(255),
  session: fc.nat(0xffff_ffff),
  isSingleConnect: fc.boolean(),
})

test('a packet is read as it was written', () => {
  fc.assert(
    fc.property(header, bytes(300), bytes(40), (head, body, key) => {
      const packet = encodePacket(head, body, key)
      const { length, ...read } = readHeader(packet)
      expect(read).toEqual(head)
      expect(length).toBe(body.length)
      expect(obscure(packet.subarray(HEADER_BYTES), read, key)).toEqual(body)
    }),
    RUNS,
  )
})

test('a body over the limit is neither written nor announced', () => {
  const head = { type: 'accounting', minor: 0, sequence: 1, session: 1, isSingleConnect: false } as const
  expect(() => encodePacket(head, Buffer.alloc(MAX_BODY + 1), Buffer.from('k'))).toThrow(TacacsError)
  const packet = encodePacket(head, Buffer.alloc(1), Buffer.from('k'))
  packet.writeUInt32BE(MAX_BODY + 1, 8)
  expect(() => readHeader(packet)).toThrow(TacacsError)
})

test('any header is read, or refused by the one error', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 12, maxLength: 12 }), (array) => {
      const read = sane(() => readHeader(Buffer.from(array)))
      if (read) expect(read.length).toBeLessThanOrEqual(MAX_BODY)
    }),
    RUNS,
  )
})

test('any body is read, or refused by the one error, and holds no more than it has', () => {
  fc.assert(
    fc.property(bytes(64), (body) => {
      for (const read of [readAuthenticationReply, readAccountingReply]) {
        const reply = sane(() => read(body))
        if (reply) expect(reply.message.length).toBeLessThanOrEqual(body.length)
      }
      const rights = sane(() => readAuthorizationReply(body))
      const bytesOf = rights?.args.reduce((sum, { name, value }) => sum + name.length + value.length, 0)
      expect(bytesOf ?? 0).toBeLessThanOrEqual(body.length)
    }),
    RUNS,
  )
})

/** Bodies of authorizations whose lengths add up. */
const rights = fc
  .tuple(fc.constantFrom(1, 2, 16, 17, 33), bytes(20), fc.array(bytes(30), { maxLength: 12 }))
  .map(([status, message, args]) =>
    Buffer.concat([
      Buffer.from([status, args.length, 0, message.length, 0, 0, ...args.map(({ length }) => length)]),
      message,
      ...args,
    ]),
  )

test('any rights make a person, or are refused by the one error', () => {
  fc.assert(
    fc.property(rights, (body) => {
      const reply = readAuthorizationReply(body)
      const person = sane(() => personOf('alice', reply, { group: 'g', displayName: 'cn', publicKey: 'key' }))
      if (person) expect(person.groups).not.toContain('')
    }),
    RUNS,
  )
})

test('a body under another secret is no answer', () => {
  fc.assert(
    fc.property(header, fc.nat(0xffff), (head, other) => {
      const body = Buffer.from([1, 0, 0, 0, 0, 0])
      const read = obscure(
        encodePacket(head, body, Buffer.from('key')).subarray(12),
        head,
        Buffer.from(`${other}`),
      )
      expect(sane(() => readAuthenticationReply(read))).toBeUndefined()
    }),
    RUNS,
  )
})

test('words of a server control no terminal, whatever they are', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      const words = shown(text, 100)
      expect(words.length).toBeLessThanOrEqual(100)
      expect(words).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
      expect(words.isWellFormed()).toBe(true)
    }),
    RUNS,
  )
})
