/**
 * Collects the text that a session showed, as lines with their times, for a search: escape sequences are
 * applied within a line and dropped otherwise, as in the transcript. Its size is limited, and a flood of
 * output loses only its own seconds.
 */
import { FRAME, type Frame } from '../../container/frames.ts'
import { jsonOf, StreamDecoders } from '../frames/payload.ts'
import { harmless } from '../terminal/filter.ts'
import { Transcript } from './text.ts'

/** Bytes of one channel's output that are read per second; the rest is left out. */
export const MAX_PER_SECOND = 64 * 1024
/** Bytes of a session's output that are read: a screen that is redrawn again and again has few new lines. */
export const MAX_READ = 64 * 1024 * 1024
/** Characters and lines of a session's output; later ones are left out. */
export const MAX_TEXT = 8 * 1024 * 1024
export const MAX_LINES = 200_000
/** Commands of a session, and operations on files. */
export const MAX_OPERATIONS = 100_000
/** Characters of one line. */
const MAX_LINE_TEXT = 1024
/** Channels that are read at a time. */
const MAX_CHANNELS = 64
/** Lines remembered per channel: a redrawn screen shows nothing new. */
const REMEMBERED = 256
const SECOND = 1_000_000

/** `at`: milliseconds since the recording began. */
export interface TextLine {
  at: number
  channel: number
  text: string
}

interface Reading {
  page: Transcript
  decoders: StreamDecoders
  second: number
  bytes: number
  /** Recent lines, the newest last. */
  recent: Set<string>
  lastTime: number
}

export class SessionLines {
  readonly output: TextLine[] = []
  readonly files: TextLine[] = []
  readonly commands: TextLine[] = []
  /** Set if something was left out. */
  isPartial = false
  readonly #readings = new Map<number, Reading>()
  #length = 0
  readonly #maxRead: number
  #bytes = 0

  /** `maxRead`: limit of the bytes of output that are read. */
  constructor(maxRead = MAX_READ) {
    this.#maxRead = maxRead
  }

  add(frame: Frame): void {
    if (frame.type === FRAME.output || frame.type === FRAME.errorOutput) this.#read(frame)
    else if (frame.type === FRAME.file) this.#file(frame)
    else if (frame.type === FRAME.command) this.#command(frame)
    else if (frame.type === FRAME.channelClose) this.#close(frame.channel)
  }

  /** Ends all channels after the last frame. */
  finish(): void {
    for (const channel of [...this.#readings.keys()]) this.#close(channel)
  }

  /** Returns the collected lines, once all frames were added. */
  kept(): Pick<SessionLines, 'output' | 'files' | 'commands' | 'isPartial'> {
    const { output, files, commands, isPartial } = this
    return { output, files, commands, isPartial }
  }

  #read({ channel, time, type, payload }: Frame): void {
    const reading = this.#readings.get(channel) ?? this.#begin(channel)
    if (!reading || this.#isFull) {
      this.isPartial = true
      return
    }
    const second = Math.floor(time / SECOND)
    if (second !== reading.second) Object.assign(reading, { second, bytes: 0 })
    const isOver = reading.bytes > MAX_PER_SECOND
    reading.bytes += payload.length
    reading.lastTime = time
    if (isOver) {
      // The next piece may begin within a sequence or a character.
      this.isPartial = true
      if (reading.page.current === '') return
      this.#endLine(channel, reading)
      Object.assign(reading, { page: new Transcript(), decoders: new StreamDecoders() })
      return
    }
    this.#bytes += payload.length
    reading.page.push(reading.decoders.decode(channel, type, payload))
    this.#take(channel, reading)
  }

  #begin(channel: number): Reading | undefined {
    if (this.#readings.size >= MAX_CHANNELS) return undefined
    const reading = {
      page: new Transcript(),
      decoders: new StreamDecoders(),
      second: -1,
      bytes: 0,
      recent: new Set<string>(),
      lastTime: 0,
    }
    this.#readings.set(channel, reading)
    return reading
  }

  #close(channel: number): void {
    const reading = this.#readings.get(channel)
    if (!reading) return
    this.#endLine(channel, reading)
    this.#readings.delete(channel)
  }

  #endLine(channel: number, reading: Reading): void {
    reading.page.breakLine()
    this.#take(channel, reading)
  }

  #take(channel: number, reading: Reading): void {
    const text = reading.page.take()
    if (text === '') return
    for (const line of text.split('\n')) {
      for (let from = 0; from < line.length; from += MAX_LINE_TEXT) {
        this.#line(channel, reading, line.slice(from, from + MAX_LINE_TEXT).trim())
      }
    }
  }

  #line(channel: number, { recent, lastTime }: Reading, text: string): void {
    if (text === '') return
    const isKnown = recent.delete(text)
    recent.add(text)
    if (isKnown) return
    const [oldest] = recent
    if (recent.size > REMEMBERED && oldest !== undefined) recent.delete(oldest)
    if (this.#isFull) {
      this.isPartial = true
      return
    }
    this.#length += text.length
    this.output.push({ at: Math.floor(lastTime / 1000), channel, text })
  }

  #file(frame: Frame): void {
    const { operation, path, target, direction } = fieldsOf(frame)
    // Uploads and downloads have events of their own.
    if (direction !== undefined || path === '') return
    this.#operation(this.files, frame, [operation, path, target])
  }

  #command(frame: Frame): void {
    this.#operation(this.commands, frame, [fieldsOf(frame)['line']])
  }

  #operation(list: TextLine[], { channel, time }: Frame, words: readonly unknown[]): void {
    const text = words.filter((word) => typeof word === 'string' && word !== '').join(' ')
    if (text === '') return
    if (list.length >= MAX_OPERATIONS) {
      this.isPartial = true
      return
    }
    list.push({ at: Math.floor(time / 1000), channel, text: harmless(text.slice(0, MAX_LINE_TEXT)) })
  }

  get #isFull(): boolean {
    return this.#bytes >= this.#maxRead || this.#length >= MAX_TEXT || this.output.length >= MAX_LINES
  }
}

function fieldsOf({ payload }: Frame): Record<string, unknown> {
  const fields = jsonOf(payload)
  return typeof fields === 'object' && fields !== null ? { ...fields } : {}
}
