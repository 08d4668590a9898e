/** Object identifiers: their order, and their form in BER (X.690 8.19). */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../proxies/bytes/malformed.ts'

export type Oid = readonly number[]

/** RFC 2578 3.5. */
const MAX_ARCS = 128
const MAX_ARC = 0xffffffff

export const oid = (text: string): Oid => text.split('.').map(Number)

/** Compares in lexicographical order, which is that of a walk (RFC 2578 2). */
export function compareOids(a: Oid, b: Oid): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return a.length - b.length
}

/** Whether `name` begins with `prefix`. */
export function isBelow(name: Oid, prefix: Oid): boolean {
  return prefix.length <= name.length && prefix.every((arc, i) => name[i] === arc)
}

/** Returns the value of an OBJECT IDENTIFIER. The first two arcs share one number. */
export function oidBytes(name: Oid): Buffer {
  const [first = 0, second = 0, ...rest] = name
  const bytes: number[] = []
  for (const arc of [first * 40 + second, ...rest]) {
    const digits = [arc % 0x80]
    for (let left = Math.floor(arc / 0x80); left > 0; left = Math.floor(left / 0x80))
      digits.unshift(0x80 | (left % 0x80))
    bytes.push(...digits)
  }
  return Buffer.from(bytes)
}

/** Reads the value of an OBJECT IDENTIFIER. Throws MalformedError. */
export function readOid(bytes: Uint8Array): Oid {
  const arcs: number[] = []
  let arc = 0
  let isOpen = bytes.length === 0
  for (const byte of bytes) {
    arc = arc * 0x80 + (byte & 0x7f)
    isOpen = (byte & 0x80) !== 0
    if (MAX_ARC < arc) throw new MalformedError(`a number of at most ${MAX_ARC} was expected in a name`)
    if (isOpen) continue
    if (arcs.length === 0)
      arcs.push(Math.min(2, Math.floor(arc / 40)), arc - 40 * Math.min(2, Math.floor(arc / 40)))
    else arcs.push(arc)
    arc = 0
    if (MAX_ARCS < arcs.length)
      throw new MalformedError(`at most ${MAX_ARCS} numbers were expected in a name`)
  }
  if (isOpen) throw new MalformedError('a name was expected to end with its last number')
  return arcs
}
