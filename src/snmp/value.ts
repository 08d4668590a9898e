/** Values of objects in BER, by the types of SMIv2 (RFC 2578 7.1). */
import { Buffer } from 'node:buffer'
import { der, integer, octets, TAG } from '../../proxies/bytes/der.ts'
import { type Oid, oidBytes } from './oid.ts'

const COUNTER32 = 0x41
const GAUGE32 = 0x42
const TIME_TICKS = 0x43
const COUNTER64 = 0x46
const MAX_UNSIGNED32 = 0xffffffff

/** In place of a value (RFC 3416 3). */
export const NO_SUCH_OBJECT = Buffer.from([0x80, 0])
export const NO_SUCH_INSTANCE = Buffer.from([0x81, 0])
export const END_OF_MIB_VIEW = Buffer.from([0x82, 0])

export const oidValue = (name: Oid): Buffer => der(TAG.OID, oidBytes(name))
export const textValue = (text: string): Buffer => octets(Buffer.from(text))
export const octetsValue = octets
/** Clamps to 32 signed bits. */
export const integerValue = (value: number): Buffer =>
  integer(Math.max(-0x80000000, Math.min(0x7fffffff, Math.trunc(value))))
/** Clamps, as gauges do (RFC 2578 7.1.7). */
export const gaugeValue = (value: number): Buffer => unsigned(GAUGE32, whole(Math.min(MAX_UNSIGNED32, value)))
/** Wraps, as counters and times do (RFC 2578 7.1.6, 7.1.8). */
export const counterValue = (value: number): Buffer => unsigned(COUNTER32, wrapped(value))
export const ticksValue = (hundredths: number): Buffer => unsigned(TIME_TICKS, wrapped(hundredths))
export const counter64Value = (value: number): Buffer => unsigned(COUNTER64, whole(value))

/** Returns 0 for what is no number. */
const whole = (value: number): bigint =>
  BigInt(Math.max(0, Math.min(Number.MAX_SAFE_INTEGER, Math.trunc(value) || 0)))
const wrapped = (value: number): bigint => BigInt.asUintN(32, whole(value))

/** Builds an INTEGER that is never negative: a zero byte precedes one whose first bit is set. */
function unsigned(tag: number, value: bigint): Buffer {
  const bytes = Buffer.alloc(9)
  bytes.writeBigUInt64BE(value, 1)
  let first = 0
  while (first < 8 && bytes[first] === 0 && bytes[first + 1]! < 0x80) first += 1
  return der(tag, bytes.subarray(first))
}
