import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PacketReader } from '../../../../proxies/ssh/transport/packet-reader.ts'
import type { Ssh2Decipher } from '../../../../proxies/ssh/transport/ssh2.ts'
import { BLOCKS, type Pair, pairOf, SUITES } from './ciphers.ts'

interface World {
  decipher: Ssh2Decipher
  hasEnded: boolean
  received: Buffer[]
  /** Called with each payload, before it is received. */
  onPayload: (payload: Buffer) => void
  deliver(payload: Buffer): void
  count(): void
}

function worldOf({ decipher }: Pair): World {
  return {
    decipher,
    hasEnded: false,
    received: [],
    onPayload: () => undefined,
    count: () => undefined,
    deliver(payload) {
      this.onPayload(payload)
      this.received.push(Buffer.from(payload))
    },
  }
}

function readerOf(world: World): PacketReader {
  const reader = PacketReader.of(world)
  if (!reader) throw new Error('there is no reader of this cipher')
  return reader
}

/** Reads the bytes in pieces of these sizes, the last one again and again. */
function readIn(reader: PacketReader, bytes: Buffer, sizes: readonly number[]): void {
  for (let n = 0, at = 0; at < bytes.length; n++) {
    const size = sizes[Math.min(n, sizes.length - 1)]!
    reader.read(Buffer.from(bytes.subarray(at, at + size)))
    at += size
  }
}

describe.each(SUITES.map((suite) => ({ suite, name: suite.join(' ') })))('$name', ({ suite }) => {
  const lengths = fc.array(fc.integer({ min: 1, max: 34_000 }), { minLength: 1, maxLength: 8 })
  const sizes = fc
    .tuple(fc.array(fc.integer({ min: 1, max: 65_536 })), fc.integer({ min: 1000, max: 65_536 }))
    .map(([some, last]) => [...some, last])

  test('packets are read in whatever pieces they come, each once and in order', () => {
    fc.assert(
      fc.property(lengths, sizes, (payloads, pieces) => {
        const pair = pairOf(suite, 0xfffffffe)
        const world = worldOf(pair)
        const sent = payloads.map((length) => randomBytes(length))
        readIn(readerOf(world), Buffer.concat(sent.map((payload) => pair.seal(payload))), pieces)
        expect(world.received.length).toBe(sent.length)
        expect(Buffer.concat(world.received).equals(Buffer.concat(sent))).toBe(true)
        expect(world.decipher.inSeqno).toBe((0xfffffffe + sent.length) >>> 0)
      }),
      { numRuns: 12 },
    )
  })

  test('a packet is delivered with its last byte, not before', () => {
    const pair = pairOf(suite)
    const world = worldOf(pair)
    const reader = readerOf(world)
    for (const payload of [randomBytes(1), randomBytes(100), randomBytes(30)]) {
      const packet = pair.seal(payload)
      readIn(reader, packet.subarray(0, -1), [1])
      expect(world.received).toEqual([])
      reader.read(packet.subarray(-1))
      expect(world.received.splice(0)).toEqual([payload])
    }
  })

  test('a changed byte anywhere behind the length ends the reading', () => {
    for (const at of [4, 20, -1]) {
      const pair = pairOf(suite)
      const world = worldOf(pair)
      const packets = Buffer.concat([pair.seal(randomBytes(10)), pair.seal(randomBytes(40))])
      const changed = packets.length - pair.seal(randomBytes(40)).length
      packets[at < 0 ? packets.length + at : changed + at]! ^= 1
      expect(() => readerOf(world).read(packets)).toThrow(/valid MAC/)
      expect(world.received.length).toBe(1)
    }
  })

  test('random bytes end the reading or wait for more, and nothing is delivered', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 50_000 }), { maxLength: 4 }),
        (chunks) => {
          const world = worldOf(pairOf(suite))
          const reader = readerOf(world)
          try {
            for (const chunk of chunks) reader.read(Buffer.from(chunk))
          } catch {}
          expect(world.received).toEqual([])
        },
      ),
      { numRuns: 30 },
    )
  })

  test('packets behind a change of keys are read with the new ones', () => {
    const pair = pairOf(suite)
    const world = worldOf(pair)
    const others = SUITES.map((other) => pairOf(other, 7))
    const sent: Buffer[] = []
    const bytes: Buffer[] = []
    for (const next of [pair, ...others]) {
      const payload = randomBytes(2000)
      sent.push(payload)
      bytes.push(next.seal(payload))
    }
    const following = [...others]
    world.onPayload = () => {
      world.decipher = following.shift()?.decipher ?? world.decipher
    }
    readIn(readerOf(world), Buffer.concat(bytes), [777])
    expect(world.received).toEqual(sent)
  })
})

test.each([
  ['no packet', 0],
  ['more than the largest', 80_016],
  ['2 GiB', 0x80000000],
  ['4 GiB', 0xffffffff],
  ['no whole block', 33],
])('a length of %s is refused with its four bytes', (_name, length) => {
  for (const suite of [
    ['aes128-gcm@openssh.com'],
    ['aes256-ctr', 'hmac-sha2-256-etm@openssh.com'],
  ] as const) {
    const head = Buffer.alloc(4)
    head.writeUInt32BE(length)
    expect(() => readerOf(worldOf(pairOf(suite))).read(head)).toThrow(/a packet's length was expected/)
  }
})

test('a padding longer than its packet is refused', () => {
  const pair = pairOf(['aes128-gcm@openssh.com'])
  const packet = Buffer.alloc(4 + 16 + 16, 0)
  packet.writeUInt32BE(16)
  packet[4] = 16
  pair.cipher._instance.encrypt(packet, 0)
  expect(() => readerOf(worldOf(pair)).read(packet)).toThrow(/a padding of at most 15 bytes/)
})

test('a packet without payload is dropped', () => {
  const pair = pairOf(['aes128-gcm@openssh.com'])
  const world = worldOf(pair)
  readerOf(world).read(Buffer.concat([pair.seal(Buffer.alloc(0)), pair.seal(Buffer.of(1))]))
  expect(world.received).toEqual([Buffer.of(1)])
})

test('nothing is delivered after the end', () => {
  const pair = pairOf(['aes128-gcm@openssh.com'])
  const world = worldOf(pair)
  world.onPayload = () => {
    world.hasEnded = true
  }
  readerOf(world).read(Buffer.concat([pair.seal(Buffer.of(1)), pair.seal(Buffer.of(2))]))
  expect(world.received).toEqual([Buffer.of(1)])
})

test('a cipher of whole blocks is left to ssh2, with the bytes behind the change of keys', () => {
  const pair = pairOf(['aes128-gcm@openssh.com'])
  const world = worldOf(pair)
  const blocks = pairOf(BLOCKS)
  expect(PacketReader.of({ ...world, decipher: blocks.decipher })).toBeUndefined()
  world.onPayload = () => {
    world.decipher = blocks.decipher
  }
  const later = blocks.seal(randomBytes(50))
  const left = readerOf(world).read(Buffer.concat([pair.seal(Buffer.of(1)), later]))
  expect(left).toEqual(later)
})

test('where ssh2 has read part of a packet, ssh2 reads on', () => {
  for (const suite of SUITES) {
    const pair = pairOf(suite)
    pair.open(pair.seal(randomBytes(100)).subarray(0, 3))
    expect(PacketReader.of(worldOf(pair))).toBeUndefined()
  }
})

test('packets of many connections at once do not get into each other', () => {
  const connections = Array.from({ length: 100 }, (_, n) => {
    const pair = pairOf(SUITES[n % SUITES.length]!)
    const world = worldOf(pair)
    const sent = Array.from({ length: 5 }, () => randomBytes(1000 + n * 100))
    return {
      world,
      reader: readerOf(world),
      sent,
      bytes: Buffer.concat(sent.map((payload) => pair.seal(payload))),
    }
  })
  for (let at = 0; at < 60_000; at += 777) {
    for (const { reader, bytes } of connections) {
      if (at < bytes.length) reader.read(Buffer.from(bytes.subarray(at, at + 777)))
    }
  }
  for (const { world, sent } of connections) expect(world.received).toEqual(sent)
})
