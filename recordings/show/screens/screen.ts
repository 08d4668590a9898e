/**
 * The current screens of a session's terminals and desktops: the first picture for a new viewer. The target
 * decides their content, so they are drawn as in a replay (../replay/): filtered, with limited numbers.
 */
import { Buffer } from 'node:buffer'
import { FRAME, type Frame } from '../../container/frames.ts'
import { channelOpenOf } from '../../decode/frames/channel.ts'
import { sizeOf } from '../../decode/frames/payload.ts'
import { painterOf } from '../../decode/open-graphics.ts'
import type { Size } from '../../decode/terminal/emulator.ts'
import { Screen } from '../../decode/terminal/screen.ts'
import { type PictureChange, WatchedDesktop } from './desktop.ts'

/**
 * Bytes of the latest output that are drawn at a time: a screen shows the end of the output, and a flood is
 * not worth the time to draw it.
 */
export const MAX_DRAWN = 1024 * 1024
/** Limit of the channels with a terminal that are drawn; a connection has fewer. */
export const MAX_SCREENS = 64
/** Bytes of all drawings of a session: a screen with different colours in each cell takes some megabytes. */
const MAX_DRAWINGS = 8 * 1024 * 1024
/** Small pieces of output are collected to pieces of this length. */
const PIECE_LENGTH = 4096
/** Cost of a step beside its output: drawing a resize takes as long as some output. */
const STEP_OVERHEAD = 1024
/** Bytes of an unfinished sequence; a longer one is left out of the drawing. */
const MAX_BEGUN = 4096

const ESC = 0x1b
/** First byte of a UTF-8 character of several bytes. */
const LEAD = 0xc0

type Step = Pick<Frame, 'type' | 'payload'>

class WatchedScreen {
  readonly #screen: Screen
  #steps: Step[] = []
  #weight = 0
  /** A resize whose place among the steps was dropped. */
  #resized: Step | undefined
  /** The unfinished sequence or character at the end of the output so far. */
  #begun = Buffer.alloc(0)

  constructor(size: Size) {
    this.#screen = new Screen(size, true)
  }

  get size(): Size {
    return this.#screen.emulator.size
  }

  take({ type, payload }: Step): void {
    const last = this.#steps.at(-1)
    if (
      last?.type === type &&
      type !== FRAME.resize &&
      last.payload.length + payload.length <= PIECE_LENGTH
    ) {
      last.payload = Buffer.concat([last.payload, payload])
      this.#weight += payload.length
    } else {
      this.#steps.push({ type, payload: Buffer.from(payload) })
      this.#weight += payload.length + STEP_OVERHEAD
    }
    while (this.#weight > MAX_DRAWN) this.#dropOldest()
  }

  /**
   * Returns the output that draws the current screen on an empty one of `size`, so that later output can
   * follow.
   */
  async draw(): Promise<Buffer> {
    const steps = this.#resized ? [this.#resized, ...this.#steps] : this.#steps
    this.#steps = []
    this.#weight = 0
    this.#resized = undefined
    for (const step of steps) {
      await this.#screen.apply(step)
      if (step.type !== FRAME.resize) this.#begun = this.#begunIn(step.payload)
    }
    await this.#screen.emulator.settle()
    return Buffer.concat([Buffer.from(this.#screen.emulator.snapshot()), this.#begun])
  }

  destroy(): void {
    this.#screen.emulator.destroy()
  }

  #dropOldest(): void {
    const step = this.#steps.shift()!
    this.#weight -= step.payload.length + STEP_OVERHEAD
    if (step.type === FRAME.resize) this.#resized = step
  }

  #begunIn(output: Uint8Array): Buffer<ArrayBuffer> {
    if (this.#screen.isBetween) return Buffer.alloc(0)
    const sequence = output.lastIndexOf(ESC)
    const at = sequence >= 0 ? sequence : output.findLastIndex((byte) => byte >= LEAD)
    const begun = at >= 0 ? Buffer.from(output.subarray(at)) : Buffer.concat([this.#begun, output])
    return begun.length <= MAX_BEGUN ? begun : Buffer.alloc(0)
  }
}

/** An open channel with its screen. */
export interface ChannelState {
  channel: number
  /** The payload of its `channel_open`. */
  open: Uint8Array
  screen?: Size & { drawing: Uint8Array }
  desktop?: { width: number; height: number; png: Uint8Array }
}

interface OpenChannel {
  open: Uint8Array
  screen: WatchedScreen | undefined
  desktop: WatchedDesktop | undefined
}

export class Screens {
  readonly #channels = new Map<number, OpenChannel>()

  /** Draws a frame. A returned promise must be awaited before the next frame. */
  apply(frame: Frame): Promise<void> | undefined {
    const { type, channel, payload } = frame
    if (type === FRAME.channelOpen) {
      this.#open(frame)
      return undefined
    }
    if (type === FRAME.channelClose) {
      this.#close(channel)
      return undefined
    }
    const { screen, desktop } = this.#channels.get(channel) ?? {}
    if (desktop) return desktop.take(frame)
    const isDrawn =
      type === FRAME.output ||
      type === FRAME.errorOutput ||
      (type === FRAME.resize && sizeOf(payload) !== undefined)
    if (isDrawn) screen?.take({ type, payload })
    return undefined
  }

  /** Returns the state; a screen that exceeds the limit is left out. */
  async state(): Promise<ChannelState[]> {
    const states: ChannelState[] = []
    let room = MAX_DRAWINGS
    for (const [channel, { open, screen, desktop }] of this.#channels) {
      const drawing = await screen?.draw()
      const picture = desktop?.draw()
      const isShown = screen && drawing && drawing.length <= room
      if (isShown) room -= drawing.length
      states.push({
        channel,
        open,
        ...(isShown && { screen: { ...screen.size, drawing } }),
        ...(picture && { desktop: picture }),
      })
    }
    return states
  }

  /** Returns the changes of desktops since the last call. */
  changes(): PictureChange[] {
    return [...this.#channels].flatMap(([channel, { desktop }]) => {
      const change = desktop?.changes()
      return change ? [{ channel, ...change }] : []
    })
  }

  destroy(): void {
    for (const channel of [...this.#channels.keys()]) this.#close(channel)
  }

  #open({ channel, payload }: Frame): void {
    this.#close(channel)
    const { terminal } = channelOpenOf(payload)
    const screen = terminal && this.#channels.size < MAX_SCREENS ? new WatchedScreen(terminal) : undefined
    const hasDesktop = [...this.#channels.values()].some(({ desktop }) => desktop)
    const painter = hasDesktop ? undefined : painterOf(payload)
    const desktop = painter && new WatchedDesktop(painter)
    this.#channels.set(channel, { open: Buffer.from(payload), screen, desktop })
  }

  #close(channel: number): void {
    this.#channels.get(channel)?.screen?.destroy()
    this.#channels.delete(channel)
  }
}
