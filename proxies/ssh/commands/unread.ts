/**
 * Output that nobody has looked at yet. Between two lines of input nothing has to be known of a terminal but how it
 * looks when the next key comes, so output is kept here instead of being parsed: at most 2 × KEPT bytes, the last
 * ones, which is more than a screenful. What is dropped is searched for the switches between the two screens only,
 * and costs a terminal's flood next to nothing.
 */
import { Buffer } from 'node:buffer'

/** Bytes that are kept at least when more has come. */
export const KEPT = 8 * 1024
const CAPACITY = 2 * KEPT
const FIRST_CAPACITY = 512
const ESC = 0x1b
/** DECSET and DECRST of the alternate screen, and RIS, which leaves it. */
const RESET = '\x1bc'
const SWITCHES = ['\x1b[?1049', '\x1b[?1047', '\x1b[?47', RESET]
const LONGEST_SWITCH = '\x1b[?1049h'.length
/** The final byte of DECSET. */
const SET = 0x68

export interface Unread {
  data: Buffer
  /** Bytes before it were dropped. */
  dropped: boolean
  /** The screen that what was dropped has switched to; undefined: it did not switch. */
  alternate: boolean | undefined
}

export class UnreadOutput {
  #buffer: Buffer | undefined
  #length = 0
  #dropped = false
  #alternate: boolean | undefined

  get isEmpty(): boolean {
    return this.#length === 0 && !this.#dropped
  }

  append(data: Uint8Array): void {
    if (data.length >= CAPACITY) {
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
      const keepFrom = bytes.length - KEPT
      this.#drop(this.#length)
      // A switch that began in what was held, and one in the part of this piece that is not kept.
      if (this.#buffer !== undefined && this.#length > 0) {
        const seam = this.#buffer.subarray(Math.max(0, this.#length - LONGEST_SWITCH), this.#length)
        const joined = Buffer.concat([seam, bytes.subarray(0, LONGEST_SWITCH)])
        this.#search(joined, seam.length)
      }
      this.#search(bytes, keepFrom)
      this.#length = 0
      this.#dropped = true
      this.#hold(bytes.subarray(keepFrom))
    } else {
      this.#hold(data)
    }
  }

  /** All that is kept, and forgets it. */
  take(): Unread {
    const taken: Unread = {
      data: this.#buffer?.subarray(0, this.#length) ?? Buffer.alloc(0),
      dropped: this.#dropped,
      alternate: this.#alternate,
    }
    this.#buffer = undefined
    this.#length = 0
    this.#dropped = false
    this.#alternate = undefined
    return taken
  }

  #hold(data: Uint8Array): void {
    const wanted = this.#length + data.length
    if (wanted > CAPACITY) {
      const kept = Math.max(LONGEST_SWITCH, KEPT - data.length)
      const surplus = Math.max(0, this.#length - kept)
      this.#drop(surplus)
      this.#buffer?.copyWithin(0, surplus, this.#length)
      this.#length -= surplus
      this.#dropped = true
    }
    if (this.#buffer === undefined || this.#buffer.length < this.#length + data.length) {
      let capacity = this.#buffer?.length ?? FIRST_CAPACITY
      while (capacity < this.#length + data.length) capacity *= 2
      const larger = Buffer.allocUnsafeSlow(capacity)
      this.#buffer?.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    this.#buffer.set(data, this.#length)
    this.#length += data.length
  }

  /** The first `count` bytes that are held will be gone. */
  #drop(count: number): void {
    if (this.#buffer !== undefined) this.#search(this.#buffer.subarray(0, this.#length), count)
  }

  /** The last switch that begins before `end`. */
  #search(bytes: Buffer, end: number): void {
    if (end <= 0 || bytes.subarray(0, end).indexOf(ESC) < 0) return
    let last = -1
    for (const text of SWITCHES) {
      const at = bytes.lastIndexOf(text, end - 1, 'latin1')
      if (at <= last) continue
      last = at
      this.#alternate = text !== RESET && bytes[at + text.length] === SET
    }
  }
}
