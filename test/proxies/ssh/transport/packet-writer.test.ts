import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PacketWriter, writingBehind } from '../../../../proxies/ssh/transport/packet-writer.ts'
import { type Sealer, sealerOf } from '../../../../proxies/ssh/transport/sealers.ts'
import { BLOCKS, type Pair, pairOf, SUITES, type Suite } from './ciphers.ts'

interface World {
  pair: Pair
  sealer: Sealer
  writer: PacketWriter
  /** The bytes of each write. */
  writes: Uint8Array[]
  socket: { writableLength: number }
}

/** `isFull`: the socket keeps what is written, as with a full kernel buffer. */
function worldOf(suite: Suite, isFull = false): World {
  const pair = pairOf(suite)
  const writes: Uint8Array[] = []
  const socket = { writableLength: 0 }
  const writer = new PacketWriter(socket as Socket, (bytes) => {
    if (isFull) socket.writableLength += bytes.length
    writes.push(isFull ? bytes : Buffer.from(bytes))
  })
  const sealer = sealerOf(pair.cipher)
  if (!sealer) throw new Error(`there is no sealer of ${suite[0]}`)
  return { pair, sealer, writer, writes, socket }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe.each([...SUITES, BLOCKS].map((suite) => ({ suite, name: suite.join(' ') })))(
  '$name',
  ({ suite }) => {
    test('ssh2 reads every packet as it was sent', () => {
      const lengths = fc.array(fc.integer({ min: 1, max: 34_000 }), { minLength: 1, maxLength: 8 })
      fc.assert(
        fc.property(lengths, (payloads) => {
          const { pair, sealer, writer, writes } = worldOf(suite)
          const sent = payloads.map((length) => randomBytes(length))
          for (const payload of sent) {
            expect(writer.fits(payload)).toBe(true)
            writer.add(sealer, payload)
          }
          writer.flush()
          expect(writer.length).toBe(0)
          expect(Buffer.concat(pair.open(Buffer.concat(writes))).equals(Buffer.concat(sent))).toBe(true)
          expect(pair.cipher.outSeqno).toBe(sent.length)
        }),
        { numRuns: 12 },
      )
    })
  },
)

test('each padding has at least four bytes that differ from packet to packet', () => {
  const { pair, sealer, writer, writes } = worldOf(['aes128-gcm@openssh.com'])
  const plain: Buffer[] = []
  const seal = (packet: Uint8Array) => plain.push(Buffer.from(packet.subarray(0, -sealer.room))) > 0
  for (let length = 1; length < 70; length++) writer.add({ ...sealer, seal }, Buffer.alloc(length))
  writer.flush()
  expect(writes.length).toBe(1)
  expect(pair.cipher.outSeqno).toBe(0)
  const paddings = plain.map((packet, n) => {
    expect(packet.readUInt32BE() % 16).toBe(0)
    expect(packet.length - 5 - packet[4]!).toBe(n + 1)
    return packet.subarray(-packet[4]!).toString('hex')
  })
  for (const padding of paddings) expect(padding.length).toBeGreaterThanOrEqual(8)
  expect(new Set(paddings).size).toBe(paddings.length)
})

test('packets of one read are one write, at its end', () => {
  const { sealer, writer, writes } = worldOf(['aes128-gcm@openssh.com'])
  writingBehind(() => {
    writer.add(sealer, Buffer.alloc(20_000))
    writer.add(sealer, Buffer.alloc(20_000))
    writer.add(sealer, Buffer.alloc(1))
    expect(writes.length).toBe(0)
    expect(writer.length).toBeGreaterThan(40_000)
  })
  expect(writes.length).toBe(1)
})

test('a packet of another cause is written in the same turn', async () => {
  const { pair, sealer, writer, writes } = worldOf(['chacha20-poly1305@openssh.com'])
  writer.add(sealer, Buffer.of(1))
  expect(writes.length).toBe(0)
  await turn()
  expect(pair.open(Buffer.concat(writes))).toEqual([Buffer.of(1)])
})

test('an error in a read does not keep back the packets before it', () => {
  const { sealer, writer, writes } = worldOf(['aes128-gcm@openssh.com'])
  const read = () =>
    writingBehind(() => {
      writer.add(sealer, Buffer.of(1))
      throw new Error('broken')
    })
  expect(read).toThrow('broken')
  expect(writes.length).toBe(1)
})

test('connections take turns without changing their order', () => {
  const worlds = SUITES.map((suite) => worldOf(suite))
  const sent = worlds.map(() => [] as Buffer[])
  writingBehind(() => {
    for (let n = 0; n < 50; n++) {
      for (const [at, { sealer, writer }] of worlds.entries()) {
        const payload = randomBytes(1 + ((n * 7919) % 33_000))
        sent[at]!.push(payload)
        writer.add(sealer, payload)
      }
    }
  })
  for (const [at, { pair, writes }] of worlds.entries()) {
    expect(pair.open(Buffer.concat(writes)).every((payload, n) => payload.equals(sent[at]![n]!))).toBe(true)
  }
})

test('what waits in the socket is not overwritten, and its buffers are used again afterwards', () => {
  const { pair, sealer, writer, writes, socket } = worldOf(['aes128-gcm@openssh.com'], true)
  const sent = Array.from({ length: 60 }, (_, n) => randomBytes(1 + ((n * 7919) % 33_000)))
  for (const payload of sent) {
    writer.add(sealer, payload)
    writer.flush()
  }
  const received = pair.open(Buffer.concat(writes))
  expect(received.every((payload, n) => payload.equals(sent[n]!))).toBe(true)
  socket.writableLength = 0
  writer.recycle()
  const buffers = new Set(writes.map(({ buffer }) => buffer))
  writer.add(sealer, Buffer.alloc(30_000))
  writer.flush()
  writer.add(sealer, Buffer.alloc(30_000))
  writer.flush()
  expect(buffers.has(writes.at(-1)!.buffer)).toBe(true)
})

test('small packets that wait do not keep a buffer for the largest each', () => {
  const { sealer, writer, writes } = worldOf(['aes128-gcm@openssh.com'], true)
  for (let n = 0; n < 1000; n++) {
    writer.add(sealer, Buffer.alloc(100))
    writer.flush()
  }
  const kept = [...new Set(writes.map(({ buffer }) => buffer))]
  expect(kept.reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThan(512 * 1024)
})

test('nothing is encrypted by a cipher that ssh2 has freed', () => {
  const { pair, sealer, writer, writes } = worldOf(['aes128-gcm@openssh.com'])
  pair.cipher._dead = true
  writer.add(sealer, Buffer.of(1))
  writer.flush()
  expect(writes).toEqual([])
  expect(pair.cipher.outSeqno).toBe(0)
})

test('a payload larger than any message of a channel does not fit', () => {
  expect(worldOf(['aes128-gcm@openssh.com']).writer.fits(Buffer.alloc(34_001))).toBe(false)
})
