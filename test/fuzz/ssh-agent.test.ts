/** An agent that sends anything, in pieces of any size: an answer, a refusal, or MalformedError. */
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import {
  AGENT,
  type AgentKey,
  AgentMessages,
  buildSignRequest,
  MAX_AGENT_MESSAGE,
  parseIdentities,
  parseSignature,
} from '../../proxies/ssh/codec/agent.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'

const RUNS = { numRuns: 3_000 }

const blob = (type: string) => new Writer().string(type).string(Buffer.alloc(32, 7)).finish()
const KEY: AgentKey = {
  blob: blob('ssh-ed25519'),
  algorithm: 'ssh-ed25519',
  signature: 'ssh-ed25519',
  flags: 0,
}
const LIST = new Writer()
  .byte(AGENT.identitiesAnswer)
  .uint32(3)
  .string(blob('ssh-ed25519'))
  .string('one')
  .string(blob('ssh-rsa'))
  .string('two')
  .string(blob('ssh-dss'))
  .string('three')
  .finish()
const SIGNATURE = new Writer()
  .byte(AGENT.signResponse)
  .string(new Writer().string('ssh-ed25519').string(Buffer.alloc(64)).finish())
  .finish()

/** One of the messages with some bytes changed, removed or inserted; or any bytes. */
const spoilt = fc.oneof(
  fc.uint8Array({ maxLength: 64 }),
  fc
    .tuple(
      fc.constantFrom(LIST, SIGNATURE),
      fc.array(fc.tuple(fc.nat(), fc.nat({ max: 8 }), fc.uint8Array({ maxLength: 8 })), { maxLength: 4 }),
    )
    .map(([seed, edits]) => {
      let bytes: Uint8Array = seed
      for (const [place, removed, added] of edits) {
        const at = place % (bytes.length + 1)
        bytes = Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)])
      }
      return bytes
    }),
)

function orMalformed<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedError)
    return undefined
  }
}

test('what is whole is understood', () => {
  expect(parseIdentities(LIST).map(({ algorithm, flags }) => [algorithm, flags])).toEqual([
    ['ssh-ed25519', 0],
    ['rsa-sha2-512', 4],
  ])
  expect(parseSignature(SIGNATURE, KEY)).toEqual(SIGNATURE.subarray(5))
  expect(parseSignature(SIGNATURE, { ...KEY, signature: 'rsa-sha2-512' })).toBeUndefined()
})

test('any message is understood or refused', () => {
  fc.assert(
    fc.property(spoilt, (bytes) => {
      for (const key of orMalformed(() => parseIdentities(bytes)) ?? []) {
        expect(key.signature).not.toBe('ssh-rsa')
        buildSignRequest(key, Buffer.alloc(8))
      }
      const field = orMalformed(() => parseSignature(bytes, KEY))
      if (field) expect(field.subarray(4, 15).toString()).toBe('ssh-ed25519')
    }),
    RUNS,
  )
})

test('messages come out of any pieces as they went in, one for a question', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 300 }), fc.array(fc.nat(64)), (body, cuts) => {
      const bytes = new Writer().string(body).finish()
      const messages = new AgentMessages()
      let at = 0
      let found: Buffer | undefined
      for (const size of [...cuts, bytes.length]) {
        expect(found).toBeUndefined()
        found = messages.push(bytes.subarray(at, at + size))
        at += size
        if (at >= bytes.length) break
      }
      expect(found).toEqual(Buffer.from(body))
    }),
    RUNS,
  )
})

test('the largest message, byte by byte, is not copied once for each', () => {
  const body = Buffer.alloc(MAX_AGENT_MESSAGE, 7)
  const bytes = new Writer().string(body).finish()
  const messages = new AgentMessages()
  const copies = [vi.spyOn(Buffer, 'alloc'), vi.spyOn(Buffer, 'concat')]
  let found: Buffer | undefined
  for (const byte of bytes) found = messages.push(Uint8Array.of(byte))
  const made = copies.map(({ mock }) => mock.calls.length)
  vi.restoreAllMocks()
  expect(made.reduce((sum, count) => sum + count)).toBeLessThan(50)
  expect(found?.equals(body)).toBe(true)
})

test('any bytes are a message, a part of one, or refused', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 32 })), (pieces) => {
      const messages = new AgentMessages()
      orMalformed(() => {
        for (const piece of pieces) messages.push(piece)
      })
    }),
    RUNS,
  )
})
