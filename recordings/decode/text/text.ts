/**
 * A channel as plain text: its lines without colours. Sequences that edit the current line are applied (an
 * erased typo does not show, a progress bar shows its last state), those that leave the line begin a new one,
 * and all others are dropped. The result contains no control character but the line's end.
 */
import { FRAME, type Frame } from '../../container/frames.ts'
import { describeFrame } from '../describe.ts'
import { framesOfChannel, leftOut, type Shown } from '../frames/channel.ts'
import { StreamDecoders } from '../frames/payload.ts'
import { harmless } from '../terminal/filter.ts'
import { type TerminalHandler, TerminalParser } from '../terminal/parser.ts'

/** Characters of a line: a longer one is broken. */
export const MAX_LINE = 4096
const TAB = 8

/**
 * Yields pieces of text, lines ended by LF. Frames other than output stand on lines of their own, in
 * brackets. The first line names the channels that are left out; if all channels are shown, each line begins
 * with its channel.
 */
export async function* exportText(frames: AsyncIterable<Frame>, shown: Shown): AsyncGenerator<string> {
  const lacks = leftOut(shown)
  if (lacks !== undefined) yield `[only ${lacks} is shown here]\n`
  const pages = new Map<number, ChannelPage>()
  for await (const frame of framesOfChannel(frames, shown.channel)) {
    let page = pages.get(frame.channel)
    if (!page) {
      page = new ChannelPage(shown.channel === 'all' ? `${frame.channel}| ` : '')
      pages.set(frame.channel, page)
    }
    const isOver = frame.type === FRAME.channelClose
    const text = page.linesOf(frame) + (isOver ? page.finish() : '')
    if (isOver) pages.delete(frame.channel)
    if (text !== '') yield text
  }
  for (const page of pages.values()) yield page.finish()
}

/** Yields a channel's output bytes unchanged. */
export async function* exportBytes(
  frames: AsyncIterable<Frame>,
  { channel }: Shown,
): AsyncGenerator<Uint8Array> {
  for await (const { type, payload } of framesOfChannel(frames, channel)) {
    if (type === FRAME.output || type === FRAME.errorOutput) yield payload
  }
}

/** The text of one channel. */
class ChannelPage {
  readonly #decoders = new StreamDecoders()
  readonly #page = new Transcript()
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  linesOf(frame: Frame): string {
    switch (frame.type) {
      case FRAME.output:
      case FRAME.errorOutput:
        this.#page.push(this.#decoders.decode(frame.channel, frame.type, frame.payload))
        break
      // Echoed input is already in the output. A resize does not matter to a reader.
      case FRAME.input:
      case FRAME.inputWithheld:
      case FRAME.resize:
      case FRAME.graphics:
      case FRAME.pixelFormat:
      case FRAME.pointer:
      case FRAME.key:
        break
      default:
        this.#page.breakLine()
        this.#page.line(describeFrame(frame))
    }
    return this.#taken()
  }

  finish(): string {
    this.#page.push(this.#decoders.finish())
    this.#page.breakLine()
    return this.#taken()
  }

  #taken(): string {
    const text = harmlessLines(this.#page.take())
    if (this.#prefix === '' || text === '') return text
    return text.replace(/^(?!$)/gm, this.#prefix)
  }
}

/** Escapes the characters that reverse text, for lines as in a listing. */
export function harmlessLines(text: string): string {
  return text.split('\n').map(harmless).join('\n')
}

/** A terminal of one line. */
export class Transcript implements TerminalHandler {
  readonly #parser = new TerminalParser(this)
  #cells: string[] = []
  #column = 0
  #done = ''

  push(text: string): void {
    this.#parser.push(text)
  }

  /** Returns the lines finished since the last call. */
  take(): string {
    const done = this.#done
    this.#done = ''
    return done
  }

  /** The unfinished line. */
  get current(): string {
    return this.#cells.join('')
  }

  /** Ends the current line if it is not empty. */
  breakLine(): void {
    if (this.#cells.length > 0) this.#newLine()
    this.#column = 0
  }

  line(text: string): void {
    this.#done += `${text}\n`
  }

  print(text: string): void {
    for (const character of text) {
      if (this.#column >= MAX_LINE) this.#newLine()
      while (this.#cells.length < this.#column) this.#cells.push(' ')
      this.#cells[this.#column++] = character
    }
  }

  control(code: number): void {
    if (code === 0x08) this.#move(-1)
    else if (code === 0x09) this.#column = Math.min(MAX_LINE, (Math.floor(this.#column / TAB) + 1) * TAB)
    else if (code === 0x0d) this.#column = 0
    else if (code >= 0x0a && code <= 0x0c) this.#newLine()
  }

  escape(intermediates: string, final: string): void {
    if (intermediates === '' && 'DEM'.includes(final)) this.breakLine()
  }

  csi(prefix: string, parameters: string, intermediates: string, final: string): void {
    if (prefix !== '' || intermediates !== '') return
    const value = Math.min(MAX_LINE, Number.parseInt(parameters, 10) || 0)
    const count = Math.max(1, value)
    if (final === 'K') this.#eraseInLine(value)
    else if (final === 'C' || final === 'a') this.#move(count)
    else if (final === 'D') this.#move(-count)
    else if (final === 'G' || final === '`') this.#column = count - 1
    else if (final === 'P') this.#cells.splice(this.#column, count)
    else if (final === 'X') this.#cells.fill(' ', this.#column, this.#column + count)
    else if (final === '@') this.#insert(count)
    else if ('ABEFHJLMSTdefr'.includes(final)) this.breakLine()
  }

  #move(by: number): void {
    this.#column = Math.min(MAX_LINE, Math.max(0, this.#column + by))
  }

  #insert(count: number): void {
    if (this.#column >= this.#cells.length) return
    this.#cells.splice(this.#column, 0, ...Array.from({ length: count }, () => ' '))
    this.#cells.length = Math.min(MAX_LINE, this.#cells.length)
  }

  #eraseInLine(mode: number): void {
    if (mode === 0) this.#cells.length = Math.min(this.#cells.length, this.#column)
    else if (mode === 1) this.#cells.fill(' ', 0, this.#column + 1)
    else this.#cells = []
  }

  #newLine(): void {
    this.line(this.#cells.join('').trimEnd())
    this.#cells = []
    this.#column = 0
  }
}
