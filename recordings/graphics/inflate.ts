/**
 * Streams of zlib (RFC 1950) that go through a whole session, a piece in each rectangle. Node's own can neither be used
 * synchronously piece by piece nor be asked for its state; pako's can, and browsers have it, too.
 */
import {
  Z_BUF_ERROR,
  Z_OK,
  Z_STREAM_END,
  Z_SYNC_FLUSH,
  ZStream,
  zlibInflate,
  zlibInflateInit,
  zlibInflateInit2,
  zlibInflateSetDictionary,
} from 'pako'
import { MalformedGraphics } from './malformed.ts'
import { type PieceSource, Source } from './source.ts'

/** As far back as a stream may point. */
export const WINDOW = 32 * 1024
const RAW_WINDOW_BITS = -15
/** Bytes that are inflated at a time. */
const STEP = 16 * 1024
/** Bytes that a rectangle's piece may give beyond what the rectangle needs. */
export const MAX_SURPLUS = 64 * 1024
/** Bits of ZStream.data_type: how many of the last byte are not used yet, and whether a block has just ended. */
const UNUSED_BITS = 0x3f
const AFTER_BLOCK = 0x80

export class InflateStream {
  #stream: ZStream | undefined
  /** It stands behind a block, and at the beginning of a byte. */
  #isAtBoundary = false
  /** The newest output, up to twice WINDOW. */
  readonly #window = new Uint8Array(2 * WINDOW)
  #windowEnd = 0

  /** Begins anew with the next piece, as Tight may ask for. */
  reset(): void {
    this.#stream = undefined
    this.#isAtBoundary = false
    this.#windowEnd = 0
  }

  /**
   * Inflates from `input` to `output`: how much of both was used. Throws MalformedGraphics on what is no zlib.
   */
  inflate(input: Uint8Array, output: Uint8Array): { read: number; written: number } {
    const stream = this.#begun()
    stream.input = input
    stream.next_in = 0
    stream.avail_in = input.length
    stream.output = output as Uint8Array<ArrayBuffer>
    stream.next_out = 0
    stream.avail_out = output.length
    const status = zlibInflate(stream, Z_SYNC_FLUSH)
    if (status === Z_STREAM_END) throw new MalformedGraphics('expected a zlib stream to go on, and it ended')
    if (status !== Z_OK && status !== Z_BUF_ERROR) {
      throw new MalformedGraphics(`expected zlib, got what cannot be inflated: ${stream.msg || status}`)
    }
    // A call that gets nowhere says nothing of the place.
    if (stream.next_in > 0 || stream.next_out > 0) {
      this.#isAtBoundary = (stream.data_type & AFTER_BLOCK) !== 0 && (stream.data_type & UNUSED_BITS) === 0
    }
    this.#remember(output.subarray(0, stream.next_out))
    return { read: stream.next_in, written: stream.next_out }
  }

  /**
   * What the stream goes on with: its newest output, empty for one that has not begun. undefined where it stands in the
   * middle of a block or a byte, as it does not after a flush.
   */
  snapshot(): Uint8Array | undefined {
    if (!this.#stream) return new Uint8Array(0)
    if (!this.#isAtBoundary || this.#windowEnd === 0) return undefined
    return this.#window.slice(Math.max(0, this.#windowEnd - WINDOW), this.#windowEnd)
  }

  /** Goes on where `snapshot` was taken. */
  restore(snapshot: Uint8Array): void {
    this.reset()
    if (snapshot.length === 0) return
    const stream = new ZStream()
    zlibInflateInit2(stream, RAW_WINDOW_BITS)
    const window = snapshot.slice(-WINDOW)
    zlibInflateSetDictionary(stream, window)
    this.#stream = stream
    this.#isAtBoundary = true
    this.#remember(window)
  }

  #begun(): ZStream {
    if (!this.#stream) {
      this.#stream = new ZStream()
      zlibInflateInit(this.#stream)
    }
    return this.#stream
  }

  #remember(output: Uint8Array): void {
    const newest = output.subarray(-WINDOW)
    if (this.#windowEnd + newest.length > this.#window.length) {
      const kept = WINDOW - newest.length
      this.#window.copyWithin(0, this.#windowEnd - kept, this.#windowEnd)
      this.#windowEnd = kept
    }
    this.#window.set(newest, this.#windowEnd)
    this.#windowEnd += newest.length
  }
}

/** What a rectangle's piece of a stream inflates to. */
export class InflatedSource extends Source {
  readonly #stream: InflateStream
  readonly #input: PieceSource
  /** Bytes of the piece that were not inflated yet. */
  #rest: number
  #surplus = 0

  /** `length` bytes of `input` are the piece. */
  constructor(stream: InflateStream, input: PieceSource, length: number) {
    super()
    this.#stream = stream
    this.#input = input
    this.#rest = length
  }

  /**
   * Inflates what is left of the piece; false: not all of it has come. Throws MalformedGraphics when there is more in it
   * than the rectangle needs, and a little.
   */
  finish(): boolean {
    for (;;) {
      this.#surplus += this.end - this.at
      this.at = this.end
      if (this.#surplus > MAX_SURPLUS) {
        throw new MalformedGraphics(
          `expected at most ${MAX_SURPLUS} bytes beyond a rectangle's, got more out of zlib`,
        )
      }
      if (!this.#inflate(1)) return false
      if (this.#rest === 0 && this.end === this.at) return true
    }
  }

  /** Throws MalformedGraphics when the piece ends before. */
  protected fill(count: number): boolean {
    while (this.end - this.at < count) {
      const had = this.end - this.at
      if (!this.#inflate(count)) return false
      if (this.#rest === 0 && this.end - this.at === had) {
        throw new MalformedGraphics(`expected ${count} bytes out of zlib, got ${had}`)
      }
    }
    return true
  }

  /** One step; false: what comes next of the piece is not there. */
  #inflate(count: number): boolean {
    this.#makeRoom(Math.max(count, STEP))
    const there = Math.min(this.#rest, this.#input.length)
    if (there === 0 && this.#rest > 0) return false
    const room = Math.min(this.buffer.length - this.end, STEP)
    const { read, written } = this.#stream.inflate(
      this.#input.view(there),
      this.buffer.subarray(this.end, this.end + room),
    )
    this.#input.take(read)
    this.#rest -= read
    this.end += written
    return true
  }

  #makeRoom(count: number): void {
    const had = this.end - this.at
    if (this.buffer.length - this.at >= count + STEP) return
    const needed = Math.max(count, had) + STEP
    const buffer = this.buffer.length >= needed ? this.buffer : new Uint8Array(needed)
    buffer.set(this.buffer.subarray(this.at, this.end))
    this.buffer = buffer
    this.at = 0
    this.end = had
  }
}
