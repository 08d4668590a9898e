/**
 * Replays a recording in a terminal, with the keys of a pager: pause, speed, seek, next command, search. It
 * draws the emulator's screen (draw.ts); nothing else of the recording reaches the terminal.
 */

import type { Screen } from '../../decode/terminal/screen.ts'
import type { Channel } from '../index/directory.ts'
import type { Playhead } from '../replay/playhead.ts'
import type { Replay } from '../replay/replay.ts'
import { readTime, showTime } from './clock.ts'
import { Display, drawScreen } from './draw.ts'
import { findOutput } from './find.ts'
import { type Key, keysOf } from './keys.ts'
import { HELP, statusLine } from './status.ts'

/** Microseconds that an arrow key seeks. */
const STEP = 10e6
const SPEEDS = { slowest: 1 / 16, fastest: 64 }
/** Shortest time between two pictures. */
const FRAME_MS = 33
/** Time before a command at which a seek to it stops, so that its typing is seen. */
const LEAD = 1e6

/** The viewer's terminal. */
export interface Viewer {
  size(): { columns: number; rows: number }
  /** Resolves when the terminal has accepted the text. */
  write(text: string): Promise<void>
  /** Milliseconds, never decreasing. */
  now(): number
}

export interface PlayerOptions {
  replay: Replay
  /** First channel. */
  channel: Channel
  viewer: Viewer
  speed: number
  /** Longest pause that is replayed, in seconds. Undefined to keep all pauses. */
  idleLimit?: number
  /** Continues with the next channel at the end of one. */
  follows: boolean
}

type Prompt = { kind: 'time' | 'search'; text: string }

export class Player {
  readonly #options: PlayerOptions
  readonly #display = new Display()
  #channel: Channel
  #head: Playhead<Screen> | undefined
  /** Microseconds since the recording began. */
  #position = 0
  #isPlaying = true
  #speed: number
  #skipsIdle: boolean
  #left = 0
  #top = 0
  #prompt: Prompt | undefined
  #message = ''
  #finds: { text: string; channel: Channel; times: number[] } | undefined
  #keys: Key[] = []
  #isOver = false
  #wake: (() => void) | undefined
  /** Start of the current pause. */
  #waitedFrom = 0

  constructor(options: PlayerOptions) {
    this.#options = options
    this.#channel = options.channel
    this.#speed = options.speed
    this.#skipsIdle = options.idleLimit !== undefined
  }

  /** Handles input of the terminal. */
  input(text: string): void {
    this.#keys.push(...keysOf(text))
    this.#wake?.()
  }

  /** Handles a new size of the terminal. */
  resized(): void {
    this.#display.forget()
    this.#wake?.()
  }

  stop(): void {
    this.#isOver = true
    this.#wake?.()
  }

  /** Resolves when the viewer quits. Throws RecordingError; the terminal is reset in any case. */
  async run(): Promise<void> {
    const { viewer } = this.#options
    await viewer.write('\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J')
    try {
      await this.#seek(this.#channel.opened)
      while (!this.#isOver) {
        for (let key = this.#keys.shift(); key !== undefined && !this.#isOver; key = this.#keys.shift()) {
          await this.#press(key)
        }
        await this.#draw()
        if (!this.#isOver && this.#keys.length === 0) await this.#wait()
      }
    } finally {
      await this.#head?.close()
      await viewer.write('\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l')
    }
  }

  /** Waits until the next picture is due, or for a key; then moves the playhead. */
  async #wait(): Promise<void> {
    const { viewer } = this.#options
    const next = this.#head?.next
    if (!this.#isPlaying || !next) {
      if (this.#isPlaying && (await this.#followed())) return
      this.#isPlaying = false
      await this.#draw()
      return await this.#sleep(undefined)
    }
    const before = viewer.now()
    const due = (next.time - this.#position) / 1000 / this.#speed
    await this.#sleep(Math.min(Math.max(due, 0), FRAME_MS))
    const passed = (viewer.now() - before) * 1000 * this.#speed
    let position = this.#position + passed
    const limit = this.#options.idleLimit
    if (this.#skipsIdle && limit !== undefined && position - this.#waitedFrom >= limit * 1e6) {
      position = Math.max(position, next.time)
    }
    this.#position = position
    if (next.time > position) return
    await this.#head?.advance(position)
    this.#waitedFrom = position
  }

  #sleep(milliseconds: number | undefined): Promise<void> {
    if (this.#keys.length > 0 || this.#isOver) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = milliseconds === undefined ? undefined : setTimeout(resolve, milliseconds)
      this.#wake = () => {
        clearTimeout(timer)
        this.#wake = undefined
        resolve()
      }
    })
  }

  async #press(key: Key): Promise<void> {
    if (this.#prompt) return await this.#type(this.#prompt, key)
    this.#message = ''
    const actions: Record<string, () => unknown> = {
      q: () => this.stop(),
      interrupt: () => this.stop(),
      ' ': () => this.#pause(),
      '+': () => this.#changeSpeed(2),
      '=': () => this.#changeSpeed(2),
      '-': () => this.#changeSpeed(0.5),
      right: () => this.#seek(this.#position + STEP),
      left: () => this.#seek(this.#position - STEP),
      up: () => this.#toCommand(-1),
      '[': () => this.#toCommand(-1),
      down: () => this.#toCommand(1),
      ']': () => this.#toCommand(1),
      g: () => this.#ask('time'),
      '/': () => this.#ask('search'),
      n: () => this.#toFind(1),
      N: () => this.#toFind(-1),
      tab: () => this.#toChannel(),
      i: () => this.#toggleIdle(),
      h: () => this.#scroll(-8, 0),
      l: () => this.#scroll(8, 0),
      k: () => this.#scroll(0, -4),
      j: () => this.#scroll(0, 4),
      '?': () => this.#say(HELP),
    }
    if (Object.hasOwn(actions, key)) await actions[key]?.()
  }

  #pause(): void {
    this.#isPlaying = !this.#isPlaying
  }

  #changeSpeed(by: number): void {
    this.#speed = Math.min(SPEEDS.fastest, Math.max(SPEEDS.slowest, this.#speed * by))
  }

  #toggleIdle(): void {
    if (this.#options.idleLimit === undefined) this.#say('no limit was given: --idle-limit SECONDS')
    else this.#skipsIdle = !this.#skipsIdle
  }

  #scroll(columns: number, rows: number): void {
    this.#left += columns
    this.#top += rows
  }

  #say(message: string): void {
    this.#message = message
  }

  #ask(kind: Prompt['kind']): void {
    this.#prompt = { kind, text: '' }
  }

  async #type(prompt: Prompt, key: Key): Promise<void> {
    if (key === 'escape' || key === 'interrupt') this.#prompt = undefined
    else if (key === 'erase') prompt.text = prompt.text.slice(0, -1)
    else if (key === 'enter') {
      this.#prompt = undefined
      await (prompt.kind === 'time' ? this.#toTime(prompt.text) : this.#search(prompt.text))
    } else if ([...key].length === 1) prompt.text += key
  }

  async #toTime(text: string): Promise<void> {
    const time = readTime(text)
    if (time === undefined) this.#say('expected a time: 90, 1:30 or 1:02:03')
    else await this.#seek(time)
  }

  async #toCommand(direction: 1 | -1): Promise<void> {
    const { channel, opened } = this.#channel
    const commands = this.#options.replay.directory.chapters.filter(
      (chapter) => chapter.channel === channel && chapter.time >= opened && chapter.type !== 'channel',
    )
    const from = this.#position
    const next =
      direction > 0
        ? commands.find(({ time }) => time - LEAD > from + 1e5)
        : commands.findLast(({ time }) => time - LEAD < from - 1e5)
    if (!next) return this.#say(direction > 0 ? 'no command follows' : 'no command before')
    await this.#seek(next.time - LEAD)
    this.#say(next.text)
  }

  async #search(text: string): Promise<void> {
    if (text === '') return
    this.#say(`searching for ${text} …`)
    await this.#draw()
    const times = await findOutput(this.#options.replay.frames(this.#channel), text)
    this.#finds = { text, channel: this.#channel, times }
    await this.#toFind(1)
  }

  async #toFind(direction: 1 | -1): Promise<void> {
    const finds = this.#finds
    if (!finds) return this.#say('search first: /')
    if (finds.channel !== this.#channel) return await this.#search(finds.text)
    const { times, text } = finds
    const next =
      direction > 0
        ? times.findIndex((time) => time > this.#position)
        : times.findLastIndex((time) => time < this.#position)
    if (next < 0) return this.#say(`${text}: not found ${direction > 0 ? 'from here on' : 'before'}`)
    await this.#seek(times[next]!)
    this.#isPlaying = false
    this.#say(`${text}: ${next + 1} of ${times.length}`)
  }

  async #toChannel(): Promise<void> {
    const channels = this.#shown()
    const next = channels[(channels.indexOf(this.#channel) + 1) % channels.length]
    if (!next || next === this.#channel) return this.#say('there is no other channel')
    this.#channel = next
    const end = next.closed ?? this.#options.replay.directory.duration
    const isThere = this.#position >= next.opened && this.#position <= end
    await this.#seek(isThere ? this.#position : next.opened)
  }

  /** Returns the channels with content to show. */
  #shown(): Channel[] {
    return this.#options.replay.directory.channels.filter(({ outputs }) => outputs > 0)
  }

  /** Returns whether the player continues with another channel. */
  async #followed(): Promise<boolean> {
    if (!this.#options.follows) return false
    const { duration } = this.#options.replay.directory
    const next = this.#shown()
      .filter((one) => one !== this.#channel && (one.closed ?? duration) > this.#position)
      .sort((one, other) => one.opened - other.opened)[0]
    if (!next) return false
    this.#channel = next
    await this.#seek(Math.max(this.#position, next.opened))
    return true
  }

  async #seek(time: number): Promise<void> {
    const { opened, closed } = this.#channel
    const { replay } = this.#options
    const to = Math.max(opened, Math.min(time, closed ?? replay.directory.duration))
    await this.#head?.close()
    this.#head = undefined
    this.#head = await replay.at(this.#channel, to)
    this.#position = to
    this.#waitedFrom = to
  }

  async #draw(): Promise<void> {
    const head = this.#head
    if (!head) return
    await head.screen.emulator.settle()
    const { columns, rows } = this.#options.viewer.size()
    const height = Math.max(1, rows - 1)
    const { size } = head.screen.emulator
    this.#left = Math.max(0, Math.min(this.#left, size.columns - columns))
    this.#top = Math.max(0, Math.min(this.#top, size.rows - height))
    const view = { columns, rows: height, left: this.#left, top: this.#top }
    const isCropped = size.columns > columns || size.rows > height
    const channels = this.#shown()
    const status = statusLine(columns, {
      isPlaying: this.#isPlaying,
      time: `${showTime(this.#position)} / ${showTime(this.#options.replay.directory.duration)}`,
      speed: this.#speed,
      channel:
        channels.length > 1
          ? `${this.#channel.kind} ${channels.indexOf(this.#channel) + 1} of ${channels.length}`
          : '',
      cropped: isCropped ? `part of ${size.columns}x${size.rows}, h j k l scroll` : '',
      message: this.#prompt ? `${this.#prompt.kind}: ${this.#prompt.text}_` : this.#message,
    })
    const text = this.#display.update([...drawScreen(head.screen.emulator, view), status])
    if (text !== '') await this.#options.viewer.write(text)
  }
}
