/**
 * Buffers output until it is needed. Between two lines of input, only the screen at the next key matters, so
 * output is kept here instead of being parsed: at least the last KEPT bytes, more than a screenful, in two
 * alternating halves. Dropped output is only searched for switches between the two screens, so a terminal's
 * flood costs next to nothing.
 */
import { Buffer } from 'node:buffer'

/** Bytes kept at least, if more has arrived; at most twice as many. */
export const KEPT = 8 * 1024
const FIRST_CAPACITY = 512
const ESC = 0x1b
const QUESTION_MARK = 0x3f
/** DECSET and DECRST of the alternate screen, without the final byte. */
const SWITCHES = ['\x1b[?1049', '\x1b[?1047', '\x1b[?47'].map((text) => Buffer.from(text))
const LONGEST_SWITCH = '\x1b[?1049h'.length
/** The final byte of DECSET. */
const SET = 0x68

export interface Unread {
  data: Buffer
  /** Set if bytes before `data` were dropped. */
  dropped: boolean
  /** The screen after the last switch in the dropped bytes. Undefined if they have no switch. */
  alternate: boolean | undefined
}

export class UnreadOutput {
  /** The full, older half. Undefined until the first half was full once. */
  #older: Buffer | undefined
  #newer: Buffer | undefined
  #length = 0
  #dropped = false
  #alternate: boolean | undefined

  get isEmpty(): boolean {
    return this.#newer === undefined
  }

  append(data: Uint8Array): void {
    let rest = data
    while (rest.length > 0) {
      if (this.#length === KEPT) this.#turn()
      this.#grow(rest.length)
      const room = KEPT - this.#length
      const part = rest.length <= room ? rest : rest.subarray(0, room)
      this.#newer?.set(part, this.#length)
      this.#length += part.length
      rest = rest.length <= room ? rest.subarray(rest.length) : rest.subarray(room)
    }
  }

  /** Returns all kept output and clears the buffer. */
  take(): Unread {
    const newer = this.#newer?.subarray(0, this.#length) ?? Buffer.alloc(0)
    const taken: Unread = {
      data: this.#older === undefined ? newer : Buffer.concat([this.#older, newer]),
      dropped: this.#dropped,
      alternate: this.#alternate,
    }
    this.#older = undefined
    this.#newer = undefined
    this.#length = 0
    this.#dropped = false
    this.#alternate = undefined
    return taken
  }

  #grow(wanted: number): void {
    const needed = Math.min(KEPT, this.#length + wanted)
    if (this.#newer !== undefined && this.#newer.length >= needed) return
    let capacity = this.#newer?.length ?? FIRST_CAPACITY
    while (capacity < needed) capacity *= 2
    const larger = Buffer.allocUnsafeSlow(capacity)
    this.#newer?.copy(larger, 0, 0, this.#length)
    this.#newer = larger
  }

  /** Makes the full newer half the older one, and reuses the other buffer. */
  #turn(): void {
    const free = this.#older
    if (free !== undefined && this.#newer !== undefined) {
      this.#dropped = true
      this.#search(free, free.length)
      // A switch may straddle the two halves.
      const seam = Buffer.concat([free.subarray(-LONGEST_SWITCH), this.#newer.subarray(0, LONGEST_SWITCH)])
      this.#search(seam, LONGEST_SWITCH)
    }
    this.#older = this.#newer
    this.#newer = free
    this.#length = 0
  }

  /** Finds the last switch that begins before `end`. */
  #search(bytes: Buffer, end: number): void {
    if (bytes.indexOf(ESC) < 0 || bytes.indexOf(QUESTION_MARK) < 0) return
    let last = -1
    for (const text of SWITCHES) {
      const at = bytes.lastIndexOf(text, end - 1)
      if (at <= last) continue
      last = at
      this.#alternate = bytes[at + text.length] === SET
    }
  }
}
