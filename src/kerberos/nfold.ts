/** The n-fold of RFC 3961 section 5.1: bytes stretched or folded to a length. */
import { Buffer } from 'node:buffer'

const ROTATION = 13

export function nfold(input: Uint8Array, size: number): Buffer {
  const total = (input.length * size) / gcd(input.length, size)
  const bits = input.length * 8
  const sum = Buffer.alloc(size)
  let carry = 0
  // Adds from the last byte on, in ones' complement: the carry of the first byte goes to the last.
  for (let at = total - 1; at >= 0; at--) {
    const turn = (ROTATION * Math.floor(at / input.length)) % bits
    const start = ((at % input.length) * 8 - turn + bits) % bits
    const first = input[start >> 3]!
    const second = input[((start >> 3) + 1) % input.length]!
    const byte = (((first << 8) | second) >> (8 - (start & 7))) & 0xff
    carry += byte + sum[at % size]!
    sum[at % size] = carry & 0xff
    carry >>= 8
  }
  for (let at = size - 1; carry > 0; at = (at + size - 1) % size) {
    carry += sum[at]!
    sum[at] = carry & 0xff
    carry >>= 8
  }
  return sum
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b))
