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
import { type Decoding, type Easel, MORE, PAUSE } from './decoding.ts'
import { MalformedGraphics, UndrawableGraphics } from './malformed.ts'
import { type PieceSource, Source } from './source.ts'

/** As far back as a stream may point. */
export const WINDOW = 32 * 1024
const RAW_WINDOW_BITS = -15
/** Bytes that are inflated at a time. */
const STEP = 16 * 1024
/** Bytes of a pixel, to say what inflating bytes that are not painted costs. */
const PIXEL = 4
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
  #isBroken = false

  /** What went through it was no zlib: nothing more comes out of it until it begins anew. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  /** Begins anew with the next piece, as Tight may ask for. */
  reset(): void {
    this.#stream = undefined
    this.#isBroken = false
    this.#isAtBoundary = false
    this.#windowEnd = 0
  }

  /**
   * Inflates from `input` to `output`: how much of both was used. Throws MalformedGraphics on what is no zlib, and from
   * then on.
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
    // A call that gets nowhere says nothing of the place.
    if (stream.next_in > 0 || stream.next_out > 0) {
      this.#isAtBoundary = (stream.data_type & AFTER_BLOCK) !== 0 && (stream.data_type & UNUSED_BITS) === 0
    }
    this.#remember(output.subarray(0, stream.next_out))
    return { read: stream.next_in, written: stream.next_out }
  }

  /**
   * What the stream goes on with: its newest output, empty for one that has not begun, 'broken' for one that is. undefined
   * where it stands in the middle of a block or a byte, as it does not after a flush.
   */
  snapshot(): Uint8Array | 'broken' | undefined {
    if (this.#isBroken) return 'broken'
    if (!this.#stream) return new Uint8Array(0)
    if (!this.#isAtBoundary || this.#windowEnd === 0) return undefined
    return this.#window.slice(Math.max(0, this.#windowEnd - WINDOW), this.#windowEnd)
  }

  /** Goes on where `snapshot` was taken. */
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

/** What a rectangle's piece of a stream inflates to. */
export class InflatedSource extends Source {
  readonly #stream: InflateStream
  readonly #input: PieceSource
  /** Bytes of the piece that were not inflated yet. */
  #rest: number

  /** `length` bytes of `input` are the piece. */
  constructor(stream: InflateStream, input: PieceSource, length: number) {
    super()
    this.#stream = stream
    this.#input = input
    this.#rest = length
  }

  /**
   * Draws from the piece with `draw`, then takes what is left of it: inflated, for the stream goes on with it, or as it is
   * where that is broken. Throws UndrawableGraphics when the piece could not be drawn.
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

  /** Inflates what is left of the piece. */
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
