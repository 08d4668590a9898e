import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PacketAligner } from '../../../../proxies/ssh/transport/aligner.ts'

/** Builds a packet in AES-GCM's form: its length in the clear, `length` bytes, a tag. */
function packet(length: number, fill: number): Buffer {
  const bytes = Buffer.alloc(4 + length + 16, fill)
  bytes.writeUInt32BE(length)
  return bytes
}

const stream = fc.array(
  fc.tuple(fc.integer({ min: 1, max: 35_000 }), fc.nat(255)).map(([length, fill]) => packet(length, fill)),
  { minLength: 1, maxLength: 12 },
)

/** Some pieces as small as a byte; with all that small, the test would take minutes and show no more. */
const pieces = fc
  .tuple(fc.array(fc.integer({ min: 1, max: 65_536 })), fc.integer({ min: 1000, max: 65_536 }))
  .map(([some, one]) => [...some, one])

describe('whole packets', () => {
  test('come of whatever pieces, each once, in order, as soon as they are there', () => {
    fc.assert(
      fc.property(stream, pieces, (packets, sizes) => {
        const sent = Buffer.concat(packets)
        const aligner = new PacketAligner()
        const taken: Buffer[] = []
        let came = 0
        let whole = 0
        for (let n = 0; came < sent.length; n++) {
          const piece = Buffer.from(sent.subarray(came, came + sizes[n % sizes.length]!))
          came += piece.length
          taken.push(Buffer.from(aligner.take(piece)))
          whole += taken.at(-1)!.length
          let expected = 0
          for (const one of packets) {
            if (expected + one.length > came) break
            expected += one.length
          }
          if (whole !== expected)
            throw new Error(`${whole} bytes of whole packets after ${came}, not ${expected}`)
        }
        expect(Buffer.concat(taken).equals(sent)).toBe(true)
        expect(aligner.leave()).toBeUndefined()
      }),
    )
  })

  test('of many connections at once do not get into each other', () => {
    const connections = Array.from({ length: 200 }, (_, n) => ({
      aligner: new PacketAligner(),
      sent: Buffer.concat(Array.from({ length: 5 }, () => packet(1000 + n * 100, n))),
      taken: [] as Buffer[],
    }))
    for (let at = 0; at < 110_000; at += 777) {
      for (const { aligner, sent, taken } of connections) {
        if (at < sent.length) taken.push(Buffer.from(aligner.take(Buffer.from(sent.subarray(at, at + 777)))))
      }
    }
    for (const { sent, taken } of connections) expect(Buffer.concat(taken).equals(sent)).toBe(true)
  })

  test('a length that no packet has passes at once: ssh2 refuses it', () => {
    const aligner = new PacketAligner()
    const bad = Buffer.from('ffffffff00112233', 'hex')
    expect(aligner.take(bad).equals(bad)).toBe(true)
    expect(aligner.take(Buffer.from([0xff])).length).toBe(0)
    expect(aligner.take(Buffer.from([0xff, 0xff, 0xff, 1])).toString('hex')).toBe('ffffffff01')
  })

  test('kept bytes can be removed', () => {
    const aligner = new PacketAligner()
    const [first, second] = [packet(100, 1), packet(200, 2)]
    expect(aligner.take(Buffer.concat([first, second.subarray(0, 50)])).equals(first)).toBe(true)
    expect(aligner.withRest(second.subarray(50, 60)).equals(second.subarray(0, 60))).toBe(true)
    expect(aligner.leave()).toBeUndefined()
    aligner.take(second.subarray(0, 99))
    expect(aligner.leave()?.equals(second.subarray(0, 99))).toBe(true)
    expect(aligner.leave()).toBeUndefined()
  })
})
