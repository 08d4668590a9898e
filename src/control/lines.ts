/** Cuts a stream into lines of a bounded length. */
import { Buffer } from 'node:buffer'
import { ControlError, MAX_LINE } from './messages.ts'

const NEWLINE = 0x0a

export class Lines {
  #rest = Buffer.alloc(0)

  /** Returns the lines that the piece completes. @throws ControlError if one is too long */
  take(piece: Buffer): string[] {
    const lines: string[] = []
    let data = Buffer.concat([this.#rest, piece])
    for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE)) {
      requireLength(end)
      lines.push(data.toString('utf8', 0, end))
      data = data.subarray(end + 1)
    }
    requireLength(data.length)
    this.#rest = Buffer.from(data)
    return lines
  }
}

function requireLength(length: number): void {
  if (length > MAX_LINE) throw new ControlError(`expected lines of at most ${MAX_LINE} bytes`)
}
