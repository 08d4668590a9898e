/**
 * Zlib streams (RFC 1950) that last a whole session, with one piece in each rectangle. Node's zlib cannot
 * inflate piece by piece synchronously, nor expose its state; pako can do both, and runs in browsers.
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
import { type Decoding, type Easel, MORE, PAUSE } from './decoding.ts'
import { MalformedGraphics, UndrawableGraphics } from './malformed.ts'
import { type PieceSource, Source } from './source.ts'

/** Farthest distance that a stream may refer back. */
export const WINDOW = 32 * 1024
const RAW_WINDOW_BITS = -15
/** Bytes inflated per step. */
const STEP = 16 * 1024
/** Bytes of a pixel, to express the cost of inflated bytes that are not painted. */
const PIXEL = 4
/**
 * Bits of ZStream.data_type: the number of unused bits of the last byte, and whether a block has just ended.
 */
const UNUSED_BITS = 0x3f
const AFTER_BLOCK = 0x80

export class InflateStream {
  #stream: ZStream | undefined
  /** Set after a block, at the beginning of a byte. */
  #isAtBoundary = false
  /** The latest output, up to twice WINDOW. */
  readonly #window = new Uint8Array(2 * WINDOW)
  #windowEnd = 0
  #isBroken = false

  /** True after invalid zlib data: the stream returns nothing until it is reset. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  /** Restarts with the next piece, on Tight's request. */
  reset(): void {
    this.#stream = undefined
    this.#isBroken = false
    this.#isAtBoundary = false
    this.#windowEnd = 0
  }

  /**
   * Inflates from `input` to `output` and returns the bytes used of both. Throws MalformedGraphics on invalid
   * zlib data, and on every call after that.
   */
  inflate(input: Uint8Array, output: Uint8Array): { read: number; written: number } {
    if (this.#isBroken) throw new MalformedGraphics('expected zlib to go on, and it broke off before')
    const stream = this.#begun()
    stream.input = input
    stream.next_in = 0
    stream.avail_in = input.length
    stream.output = output as Uint8Array<ArrayBuffer>
    stream.next_out = 0
    stream.avail_out = output.length
    const status = zlibInflate(stream, Z_SYNC_FLUSH)
    if (status === Z_STREAM_END) {
      this.#isBroken = true
      throw new MalformedGraphics('expected a zlib stream to go on, and it ended')
    }
    if (status !== Z_OK && status !== Z_BUF_ERROR) {
      this.#isBroken = true
      throw new MalformedGraphics(`expected zlib, got what cannot be inflated: ${stream.msg || status}`)
    }
    // A call without progress does not show the position.
    if (stream.next_in > 0 || stream.next_out > 0) {
      this.#isAtBoundary = (stream.data_type & AFTER_BLOCK) !== 0 && (stream.data_type & UNUSED_BITS) === 0
    }
    this.#remember(output.subarray(0, stream.next_out))
    return { read: stream.next_in, written: stream.next_out }
  }

  /**
   * Returns the state for `restore`: the latest output, empty for a stream that has not begun, or 'broken'.
   * Returns undefined in the middle of a block or a byte, which does not occur after a flush.
   */
  snapshot(): Uint8Array | 'broken' | undefined {
    if (this.#isBroken) return 'broken'
    if (!this.#stream) return new Uint8Array(0)
    if (!this.#isAtBoundary || this.#windowEnd === 0) return undefined
    return this.#window.slice(Math.max(0, this.#windowEnd - WINDOW), this.#windowEnd)
  }

  /** Continues from the state that `snapshot` returned. */
  restore(snapshot: Uint8Array | 'broken'): void {
    this.reset()
    if (snapshot === 'broken') {
      this.#isBroken = true
      return
    }
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

/** The inflated bytes of a rectangle's piece of a stream. */
export class InflatedSource extends Source {
  readonly #stream: InflateStream
  readonly #input: PieceSource
  /** Bytes of the piece that are not inflated yet. */
  #rest: number

  /** The piece is the next `length` bytes of `input`. */
  constructor(stream: InflateStream, input: PieceSource, length: number) {
    super()
    this.#stream = stream
    this.#input = input
    this.#rest = length
  }

  /**
   * Draws from the piece with `draw`, then consumes the rest of it: inflated, since the stream continues
   * after it, or unread if the stream is broken. Throws UndrawableGraphics if the piece could not be drawn.
   */
  *drawn(draw: Decoding, easel: Easel): Decoding {
    let flaw: MalformedGraphics | undefined
    try {
      yield* draw
      yield* this.#finish(easel)
    } catch (error) {
      if (!(error instanceof MalformedGraphics)) throw error
      flaw = error
    }
    if (!flaw) return
    try {
      yield* this.#finish(easel)
    } catch (error) {
      if (!(error instanceof MalformedGraphics)) throw error
      yield* this.#skip()
    }
    throw new UndrawableGraphics(flaw.message)
  }

  /** Inflates the rest of the piece. */
  *#finish(easel: Easel): Decoding {
    do {
      const surplus = this.end - this.at
      this.at = this.end
      if (easel.count(Math.ceil(surplus / PIXEL))) yield PAUSE
      while (!this.#inflate(1)) yield MORE
    } while (this.#rest > 0 || this.end > this.at)
  }

  *#skip(): Decoding {
    while (this.#rest > 0) {
      while (!this.#input.has(1)) yield MORE
      const there = Math.min(this.#rest, this.#input.length)
      this.#input.take(there)
      this.#rest -= there
    }
  }

  /** Throws MalformedGraphics if the piece ends too early. */
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

  /** Inflates one step. Returns false if the next bytes of the piece have not arrived. */
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
