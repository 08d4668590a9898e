/** Builds the index of a recording in one pass over its frames. */
import { Buffer } from 'node:buffer'
import { BlockCipher, encodeIndexHeader, INDEX_HEADER_LENGTH } from '../../container/format/index.ts'
import { FRAME, type Frame } from '../../container/frames.ts'
import type { GroupStart, PassConsumer } from '../../container/pass.ts'
import { channelOpenOf } from '../../decode/frames/channel.ts'
import { painterOf } from '../../decode/open-graphics.ts'
import { PLAIN_SIZE } from '../../decode/terminal/screen.ts'
import { Allowance } from './allowance.ts'
import { chapterOf } from './chapters.ts'
import {
  type Block,
  type Channel,
  type Directory,
  type Keyframe,
  MAX_CHAPTER_TEXT,
  MAX_ENTRIES,
  packPlace,
} from './directory.ts'
import { type Drawing, isOutput, PlainDrawing, TerminalDrawing } from './drawing.ts'
import { IndexFile } from './file.ts'
import { type FramePlace, Pictures } from './pictures.ts'

/** Bytes of a terminal's output between two of its keyframes: the most that a seek has to draw. */
export const KEYFRAME_OUTPUT = 192 * 1024
/** The same for a channel without a terminal, whose lines are drawn several times as fast. */
export const PLAIN_KEYFRAME_OUTPUT = 1024 * 1024
/** Bytes of the file between two keyframes of a channel with output: the most that a seek has to read. */
export const KEYFRAME_READ = 8 * 1024 * 1024
/** Number of keyframes after which they become half as frequent. */
const SPARSER_AFTER = 4096
/** Limit of graphic channels drawn at a time: a session has one. */
const MAX_DESKTOPS = 2
/** Limit of channels drawn at a time; further channels are replayed from their beginning. */
const MAX_SCREENS = 32

export interface IndexOptions {
  /** Path of the index. The complete file appears there when `finish` resolves, and never in part. */
  path: string
  key: Uint8Array
  /** Size and digest of the recording's file: an index of another file is not used. */
  recording: { size: number; digest: string }
  /** SALT_LENGTH random bytes. */
  salt: Buffer
  /** Allowance for the recording's terminals. Absent for a new one. */
  allowance?: Allowance
}

interface Drawn {
  drawing: Drawing
  channel: Channel
  /** Bytes since the last keyframe. */
  output: number
  read: number
  /** True if anything was drawn since. */
  isChanged: boolean
  last: Keyframe | undefined
  lastTime: number
}

export class IndexBuilder implements PassConsumer {
  readonly #options: IndexOptions
  readonly #file: IndexFile
  readonly #cipher: BlockCipher
  readonly #drawn = new Map<number, Drawn>()
  readonly #pictures = new Map<number, Pictures>()
  readonly #allowance: Allowance
  readonly #open = new Map<number, Channel>()
  readonly #directory: Directory = {
    duration: 0,
    frames: 0,
    channels: [],
    keyframes: [],
    pictures: [],
    chapters: [],
  }
  #blocks = 0
  #start: GroupStart['place']
  /** Number of frames since the start of reading. */
  #framesSinceStart = 0

  private constructor(options: IndexOptions, file: IndexFile) {
    this.#options = options
    this.#file = file
    this.#allowance = options.allowance ?? new Allowance()
    this.#cipher = new BlockCipher(options.key, { ...options.recording, salt: options.salt })
  }

  /** Throws the disk's errors. */
  static async create(options: IndexOptions): Promise<IndexBuilder> {
    return new IndexBuilder(options, await IndexFile.create(options.path, INDEX_HEADER_LENGTH))
  }

  async group({ place, length }: GroupStart): Promise<void> {
    // A group without a place of its own is read from the previous one.
    if (place) {
      this.#start = place
      this.#framesSinceStart = 0
    }
    if (this.#allowance.isSpent) this.#dispose()
    for (const pictures of this.#pictures.values()) pictures.read(length)
    for (const drawn of this.#drawn.values()) {
      drawn.read += length
      if (place && this.#isDue(drawn)) await this.#keyframe(drawn)
    }
  }

  frame(frame: Frame): Promise<void> | undefined {
    const directory = this.#directory
    directory.frames++
    directory.duration = frame.time
    const chapter = chapterOf(frame)
    if (chapter && directory.chapters.length < MAX_ENTRIES) directory.chapters.push(chapter)
    if (frame.type === FRAME.channelOpen) this.#opens(frame)
    const channel = this.#open.get(frame.channel)
    if (channel && (isOutput(frame) || frame.type === FRAME.graphics)) channel.outputs++
    if (channel && frame.type === FRAME.channelClose) this.#closes(channel, frame.time)
    const frames = this.#framesSinceStart++
    return this.#picture(frame, frames) ?? this.#draw(frame)
  }

  async close(): Promise<void> {
    this.#dispose()
    const number = this.#blocks
    const { offset, length } = await this.#write(Buffer.from(JSON.stringify(this.#directory)))
    const { recording, salt } = this.#options
    await this.#file.close(encodeIndexHeader({ ...recording, salt, directory: { number, offset, length } }))
  }

  async destroy(): Promise<void> {
    this.#dispose()
    await this.#file.destroy()
  }

  #opens(frame: Frame): void {
    const { kind, terminal, command, desktop } = channelOpenOf(frame.payload)
    const { channels } = this.#directory
    if (!this.#start || channels.length >= MAX_ENTRIES) return
    const { columns, rows } = terminal ?? PLAIN_SIZE
    const channel: Channel = {
      channel: frame.channel,
      kind,
      ...(command !== undefined && { command: command.slice(0, MAX_CHAPTER_TEXT) }),
      hasTerminal: terminal !== undefined,
      ...(desktop && { desktop }),
      columns,
      rows,
      opened: frame.time,
      outputs: 0,
      place: packPlace(this.#start),
    }
    channels.push(channel)
    this.#open.set(frame.channel, channel)
    if (this.#drawn.size >= MAX_SCREENS || this.#allowance.isSpent) return
    if (desktop) {
      this.#beginPictures(frame)
      return
    }
    const size = { columns, rows }
    const drawing = terminal ? new TerminalDrawing(size, this.#allowance) : new PlainDrawing(size)
    const since = { output: 0, read: 0, isChanged: false, last: undefined, lastTime: frame.time }
    this.#drawn.set(frame.channel, { drawing, channel, ...since })
  }

  #closes(channel: Channel, time: number): void {
    channel.closed = time
    this.#open.delete(channel.channel)
    this.#drawn.get(channel.channel)?.drawing.destroy()
    this.#drawn.delete(channel.channel)
    this.#pictures.delete(channel.channel)
  }

  #beginPictures({ channel, payload }: Frame): void {
    if (this.#pictures.size >= MAX_DESKTOPS) return
    const painter = painterOf(payload)
    if (!painter) return
    const write = async (plain: Buffer): Promise<Block> => {
      const number = this.#blocks
      const { offset, length } = await this.#write(plain)
      return [number, offset, length]
    }
    this.#pictures.set(channel, new Pictures({ channel, painter, allowance: Allowance.ofDesktop(), write }))
  }

  /** Returns undefined if the frame's channel shows no pixels. */
  #picture(frame: Frame, frames: number): Promise<void> | undefined {
    const pictures = this.#pictures.get(frame.channel)
    return (
      pictures && this.#start && this.#drawPicture(pictures, frame, { place: packPlace(this.#start), frames })
    )
  }

  async #drawPicture(pictures: Pictures, frame: Frame, at: FramePlace): Promise<void> {
    const made = await pictures.apply(frame, at, {
      read: KEYFRAME_READ,
      times: this.#sparser(this.#directory.pictures.length),
    })
    const room = MAX_ENTRIES - this.#directory.pictures.length
    this.#directory.pictures.push(...made.slice(0, room))
  }

  /** Returns the factor by which the next keyframe's distance grows after this many keyframes. */
  #sparser(count: number): number {
    return 2 ** Math.floor(count / SPARSER_AFTER)
  }

  #draw(frame: Frame): Promise<void> | undefined {
    const drawn = this.#drawn.get(frame.channel)
    if (!drawn) return undefined
    drawn.lastTime = frame.time
    if (isOutput(frame)) {
      drawn.output += frame.payload.length
      drawn.isChanged = true
    } else if (frame.type === FRAME.resize) drawn.isChanged = true
    return drawn.drawing.apply(frame)
  }

  #isDue({ output, read, channel }: Drawn): boolean {
    const { length } = this.#directory.keyframes
    if (channel.outputs === 0 || length >= MAX_ENTRIES) return false
    const sparser = this.#sparser(length)
    const between = channel.hasTerminal ? KEYFRAME_OUTPUT : PLAIN_KEYFRAME_OUTPUT
    return output >= between * sparser || read >= KEYFRAME_READ * sparser
  }

  async #keyframe(drawn: Drawn): Promise<void> {
    const { drawing, last, isChanged, lastTime } = drawn
    if (!this.#start) return
    const place = packPlace(this.#start)
    const seen = { channel: drawn.channel.channel, time: lastTime, place }
    const same = !isChanged && last
    let frame: Keyframe
    if (same) {
      frame = { ...last, ...seen }
    } else {
      const snapshot = await drawing.snapshot()
      if (!snapshot) return
      const number = this.#blocks
      const { text, ...size } = snapshot
      const { offset, length } = await this.#write(Buffer.from(text))
      frame = { ...seen, ...size, block: [number, offset, length] }
    }
    this.#directory.keyframes.push(frame)
    Object.assign(drawn, { output: 0, read: 0, isChanged: false, last: frame })
  }

  async #write(plain: Buffer): Promise<{ offset: number; length: number }> {
    const block = this.#cipher.seal(this.#blocks++, plain)
    return { offset: await this.#file.append(block), length: block.length }
  }

  #dispose(): void {
    for (const { drawing } of this.#drawn.values()) drawing.destroy()
    this.#drawn.clear()
    this.#pictures.clear()
  }
}
