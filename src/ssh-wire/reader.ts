/**
 * Reads SSH's data types (RFC 4251 section 5) from bytes of a peer. Bounds are checked before every read; byte strings
 * are views, never copies. Messages, and keys and certificates, each have a reader of their own that names its errors.
 */
import { uint32At } from '../../proxies/bytes/uint32.ts'

export abstract class WireReader<Bytes extends Uint8Array = Uint8Array> {
  protected readonly bytes: Bytes
  protected offset: number

  constructor(bytes: Bytes, offset = 0) {
    this.bytes = bytes
    this.offset = offset
  }

  /** Returns the error for `length` bytes that are not there at `offset`. */
  protected abstract tooShort(length: number): Error
  /** Returns the error for bytes behind the last field. */
  protected abstract tooLong(): Error

  get remaining(): number {
    return this.bytes.length - this.offset
  }

  byte(): number {
    return this.bytes[this.take(1)]!
  }

  uint32(): number {
    return uint32At(this.bytes, this.take(4))
  }

  uint64(): bigint {
    const high = this.uint32()
    return (BigInt(high) << 32n) | BigInt(this.uint32())
  }

  string(): Bytes {
    const length = this.uint32()
    const begin = this.take(length)
    return this.bytes.subarray(begin, begin + length) as Bytes
  }

  /** Throws if anything is left. */
  end(): void {
    if (this.remaining > 0) throw this.tooLong()
  }

  /** Returns where the next `length` bytes begin, and goes behind them. */
  protected take(length: number): number {
    const begin = this.offset
    if (this.bytes.length - begin < length) throw this.tooShort(length)
    this.offset = begin + length
    return begin
  }
}
