/** MD4 (RFC 1320): NTLM hashes passwords with it, and OpenSSL 3 no longer has it. */
import { Buffer } from 'node:buffer'

const BLOCK = 64

/** For each round: the constant, the order of a block's words, and the rotations. */
const ROUNDS = [
  { constant: 0, order: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], turns: [3, 7, 11, 19] },
  {
    constant: 0x5a827999,
    order: [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15],
    turns: [3, 5, 9, 13],
  },
  {
    constant: 0x6ed9eba1,
    order: [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15],
    turns: [3, 9, 11, 15],
  },
] as const

/** RFC 1320 3.4: F, G and H. */
const MIXES = [
  (x: number, y: number, z: number) => (x & y) | (~x & z),
  (x: number, y: number, z: number) => (x & y) | (x & z) | (y & z),
  (x: number, y: number, z: number) => x ^ y ^ z,
] as const

/** Returns 16 bytes. */
export function md4(message: Uint8Array): Buffer {
  const padded = pad(message)
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476)
  for (let at = 0; at < padded.length; at += BLOCK) addBlock(state, padded, at)
  padded.fill(0)
  const digest = Buffer.alloc(16)
  state.forEach((word, index) => {
    digest.writeInt32LE(word, index * 4)
  })
  return digest
}

/** Pads with a one bit, zeros, and the length in bits (RFC 1320 3.1 and 3.2). */
function pad(message: Uint8Array): Buffer {
  const padded = Buffer.alloc(Math.ceil((message.length + 9) / BLOCK) * BLOCK)
  padded.set(message)
  padded[message.length] = 0x80
  padded.writeBigUInt64LE(BigInt(message.length) * 8n, padded.length - 8)
  return padded
}

function addBlock(state: Int32Array, bytes: Buffer, at: number): void {
  let [a, b, c, d] = state as unknown as [number, number, number, number]
  ROUNDS.forEach(({ constant, order, turns }, round) => {
    const mix = MIXES[round]!
    order.forEach((word, step) => {
      const sum = (a + mix(b, c, d) + bytes.readInt32LE(at + word * 4) + constant) | 0
      const turn = turns[step % 4]!
      const turned = (sum << turn) | (sum >>> (32 - turn))
      ;[a, b, c, d] = [d, turned, b, c]
    })
  })
  ;[a, b, c, d].forEach((word, index) => {
    state[index] = state[index]! + word
  })
}
