/**
 * Decides which typed bytes may be recorded: those that the target's terminal echoed. A proxy cannot see the
 * terminal's echo flag, and a password typed at a prompt without echo must never reach the recording.
 *
 * The unit is a line: input up to Enter or ^C. Its bytes wait (at most PENDING_LIMIT) until the target's
 * output has confirmed every one of them; only then is the line released as input. The echo must be the very
 * next output and contiguous. While a line has bytes, each byte of output is one of these, or the line is
 * withheld:
 *
 * - the echo of the next unconfirmed byte: the byte itself; `^X` for a control byte; CR* LF for Enter; BS SP
 *   BS or BS CSI K for a backspace (nothing if the line is empty); nothing for the bracketed paste marks;
 * - a backspace over confirmed characters, CR and CSI … C (over the prompt) before the first of them, or such
 *   a character printed again: line editors repaint;
 * - CSI … m, K, h or l (colour, erase to the end of the line, modes), which confirm nothing.
 *
 * Any other output (a program's, a completion, a history line, an editor) is a mismatch: all waiting input is
 * withheld, and so is all later input up to Enter. Withholding too much costs an auditor nothing, since the
 * output shows the same. A secret is released only if the target prints exactly its bytes as the next output
 * after each of them, and so has shown it on the screen anyway.
 */

/** Bytes of input that wait for their echo. */
export const PENDING_LIMIT = 4096
/** Longest escape sequence in the output, in bytes. */
const SEQUENCE_LIMIT = 32

const ETX = 0x03
const BEL = 0x07
const BS = 0x08
const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const ESC = 0x1b
const SPACE = 0x20
const CARET = 0x5e
const DEL = 0x7f
/** The bracketed paste marks, CSI 200 ~ and CSI 201 ~, without their fifth byte. */
const PASTE = [ESC, 0x5b, 0x32, 0x30, -1, 0x7e]

export interface EchoSink {
  /** Receives a line that was echoed completely. */
  echoed(line: Uint8Array): void
}

export class Echo {
  readonly #sink: EchoSink
  /** Input from the beginning of the line on; its first #confirmed bytes were echoed. */
  #input: number[] = []
  #confirmed = 0
  /** The line's characters as the target has shown them, and its cursor. */
  #shown: number[] = []
  #cursor = 0
  /** Bytes received so far of a longer echo or an escape sequence. */
  #partial: number[] = []
  /** Set after a CR: the cursor may move over the prompt to the line's first character. */
  #returned = false
  #withholding = false
  #withheld = 0

  constructor(sink: EchoSink) {
    this.#sink = sink
  }

  /** Returns the number of bytes typed and not released since the last call. */
  takeWithheld(): number {
    const count = this.#withheld
    this.#withheld = 0
    return count
  }

  input(data: Uint8Array): void {
    for (const byte of data) {
      if (this.#withholding) {
        this.#withheld++
        if (endsLine(byte)) this.#withholding = false
      } else {
        this.#input.push(byte)
        if (PENDING_LIMIT < this.#input.length) this.#withhold()
      }
    }
  }

  output(data: Uint8Array): void {
    for (const byte of data) {
      this.#skipUnechoed()
      if (this.#input.length === 0) return
      if (!this.#accept(byte)) {
        this.#withhold()
        return
      }
    }
  }

  /** No more output: withholds the waiting input. */
  close(): void {
    this.#withhold()
  }

  #withhold(): void {
    const last = this.#input.at(-1)
    this.#withheld += this.#input.length
    if (last !== undefined) this.#withholding = !endsLine(last)
    this.#input = []
    this.#reset()
  }

  #reset(): void {
    this.#confirmed = 0
    this.#shown = []
    this.#cursor = 0
    this.#partial = []
    this.#returned = false
  }

  /** Skips input that has no echo. */
  #skipUnechoed(): void {
    while (this.#confirmed < this.#input.length) {
      const byte = this.#input[this.#confirmed]!
      if (isErase(byte) && this.#shown.length === 0 && this.#partial.length === 0) this.#confirmed++
      else if (this.#pasteMarkNext()) this.#confirmed += PASTE.length
      else return
    }
  }

  #pasteMarkNext(): boolean {
    return PASTE.every((expected, index) => {
      const byte = this.#input[this.#confirmed + index]
      return byte === expected || (index === 4 && (byte === 0x30 || byte === 0x31))
    })
  }

  /** Checks one byte of output while the line has bytes. Returns false if the byte is unexpected. */
  #accept(byte: number): boolean {
    const first = this.#partial[0]
    if (first === ESC) return this.#acceptSequence(byte)
    if (first !== undefined) return this.#acceptRest(byte)
    if (byte === ESC) return this.#begin(byte)
    const next = this.#confirmed < this.#input.length ? this.#input[this.#confirmed]! : undefined
    this.#returned = false
    if (this.#cursor < this.#shown.length) {
      if (byte === BS) return this.#moveLeft()
      if (byte !== this.#shown[this.#cursor]) return false
      this.#cursor++
      return true
    }
    if (byte === CR) return this.#begin(byte)
    if (next === undefined) return byte === BEL || (byte === BS && this.#moveLeft())
    if (isErase(next) && byte === BS) return this.#begin(byte)
    if (byte === BS) return this.#moveLeft()
    if (next === CR || next === LF) return byte === LF && this.#release()
    if (byte === CARET && isNotated(next)) return this.#begin(byte)
    if (byte !== next || isNotated(next)) return false
    return this.#confirm(byte)
  }

  /** Checks the next byte of a longer echo. */
  #acceptRest(byte: number): boolean {
    const next = this.#confirmed < this.#input.length ? this.#input[this.#confirmed]! : -1
    switch (this.#partial[0]) {
      case CR:
        if (byte === CR) return true
        if (byte === LF) return (next === CR || next === LF) && this.#release()
        this.#partial = []
        if (byte !== ESC || this.#shown.length === 0) return false
        this.#cursor = 0
        this.#returned = true
        return this.#begin(byte)
      case CARET:
        if (byte !== (next ^ 0x40)) return false
        this.#partial = []
        if (next === ETX) return this.#release()
        return this.#confirm(CARET, byte)
      case BS:
        if (this.#partial.length === 1) return (byte === SPACE || byte === ESC) && this.#begin(byte)
        if (this.#partial[1] === SPACE) return byte === BS && this.#erase()
        if (this.#partial.length === 2) return byte === 0x5b && this.#begin(byte)
        return byte === 0x4b && this.#erase()
    }
    return false
  }

  /** CSI, parameters, and a final byte that neither moves the cursor nor prints (ECMA-48 section 5.4). */
  #acceptSequence(byte: number): boolean {
    if (this.#partial.length === 1) return byte === 0x5b && this.#begin(byte)
    if (0x20 <= byte && byte < 0x40) return this.#partial.length < SEQUENCE_LIMIT && this.#begin(byte)
    this.#partial = []
    if (byte === 0x43) return this.#returned
    return byte === 0x6d || byte === 0x4b || byte === 0x68 || byte === 0x6c
  }

  #begin(byte: number): true {
    this.#partial.push(byte)
    return true
  }

  #confirm(...shown: number[]): true {
    this.#shown.push(...shown)
    this.#cursor = this.#shown.length
    this.#confirmed++
    return true
  }

  #moveLeft(): boolean {
    if (this.#cursor === 0) return false
    this.#cursor = characterBefore(this.#shown, this.#cursor)
    return true
  }

  #erase(): true {
    this.#partial = []
    this.#shown.length = characterBefore(this.#shown, this.#shown.length)
    this.#cursor = this.#shown.length
    this.#confirmed++
    return true
  }

  /** Releases the line: Enter or ^C was echoed, so the line is complete. */
  #release(): true {
    this.#sink.echoed(Uint8Array.from(this.#input.splice(0, this.#confirmed + 1)))
    this.#reset()
    return true
  }
}

function endsLine(byte: number): boolean {
  return byte === CR || byte === LF || byte === ETX
}

function isErase(byte: number): boolean {
  return byte === DEL || byte === BS
}

/** Terminals echo these as `^X` (termios ECHOCTL). */
function isNotated(byte: number): boolean {
  return (byte < SPACE && byte !== TAB && byte !== LF && byte !== CR) || byte === DEL
}

/** Returns where the UTF-8 character before `position` begins. */
function characterBefore(bytes: readonly number[], position: number): number {
  let begin = position - 1
  while (begin > 0 && (bytes[begin]! & 0xc0) === 0x80) begin--
  return begin
}
