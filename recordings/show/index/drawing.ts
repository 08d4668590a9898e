/**
 * Draws a channel for its keyframes. A terminal is drawn continuously, which costs several times as much as
 * reading it; a channel without one is lines that scroll by, of which the last ones fill the screen.
 */
import { Buffer } from 'node:buffer'
import { FRAME, type Frame } from '../../container/frames.ts'
import type { Size } from '../../decode/terminal/emulator.ts'
import { Screen } from '../../decode/terminal/screen.ts'
import type { Allowance } from './allowance.ts'

/** Bytes drawn between two checks of the allowance. */
const STEP = 16 * 1024
/** Bytes of a channel without a terminal that more than fill its screen. */
export const PLAIN_TAIL = 16 * 1024
const LF = 0x0a

export interface Snapshot extends Size {
  text: string
}

export interface Drawing {
  /** Draws output and sizes. A returned promise must be awaited before the next frame. */
  apply(frame: Frame): Promise<void> | undefined
  /** Returns the current state, or undefined if it has no text form, as within a sequence. */
  snapshot(): Promise<Snapshot | undefined>
  destroy(): void
}

export class TerminalDrawing implements Drawing {
  readonly #screen: Screen
  readonly #allowance: Allowance
  #unsettled = 0

  constructor(size: Size, allowance: Allowance) {
    this.#screen = new Screen(size, true)
    this.#allowance = allowance
  }

  apply(frame: Frame): Promise<void> | undefined {
    if (this.#allowance.isSpent) return undefined
    if (frame.type === FRAME.resize) return this.#resize(frame)
    if (!isOutput(frame)) return undefined
    this.#allowance.earn(frame.payload.length)
    if (this.#unsettled + frame.payload.length > STEP) return this.#applyInSteps(frame)
    this.#unsettled += frame.payload.length
    return this.#screen.apply(frame)
  }

  snapshot(): Promise<Snapshot | undefined> {
    return this.#allowance.spend(() => snapshotOf(this.#screen))
  }

  destroy(): void {
    this.#screen.emulator.destroy()
  }

  async #resize(frame: Frame): Promise<void> {
    this.#unsettled = 0
    await this.#allowance.spend(async () => this.#screen.apply(frame))
  }

  async #applyInSteps(frame: Frame): Promise<void> {
    const { payload } = frame
    for (let at = 0; at < payload.length && !this.#allowance.isSpent; at += STEP) {
      await this.#allowance.spend(async () => {
        await this.#screen.apply({ ...frame, payload: payload.subarray(at, at + STEP) })
        await this.#screen.emulator.settle()
      })
    }
    this.#unsettled = 0
  }
}

/** Draws only when a snapshot is requested, from the first whole line that it has kept. */
export class PlainDrawing implements Drawing {
  readonly #size: Size
  #kept: Frame[] = []
  #bytes = 0
  #isCut = false

  constructor(size: Size) {
    this.#size = size
  }

  apply(frame: Frame): undefined {
    if (!isOutput(frame)) return
    const tail = frame.payload.subarray(-PLAIN_TAIL)
    if (tail.length < frame.payload.length) this.#isCut = true
    // Copy the tail, since the payload is a view of its group.
    this.#kept.push({ ...frame, payload: Buffer.from(tail) })
    this.#bytes += tail.length
    if (this.#bytes > 2 * PLAIN_TAIL) this.#cut()
  }

  async snapshot(): Promise<Snapshot | undefined> {
    const screen = new Screen(this.#size, false)
    try {
      for (const frame of this.#wholeLines()) await screen.apply(frame)
      return await snapshotOf(screen)
    } finally {
      screen.emulator.destroy()
    }
  }

  destroy(): void {}

  /**
   * Keeps the last PLAIN_TAIL bytes and the start of their frame. Called seldom, since it reads every frame.
   */
  #cut(): void {
    let first = this.#kept.length
    this.#bytes = 0
    while (this.#bytes < PLAIN_TAIL) this.#bytes += this.#kept[--first]!.payload.length
    this.#kept = this.#kept.slice(first)
    this.#isCut = true
  }

  /** Returns the frames from the next line's beginning, since the cut may be within a line. */
  #wholeLines(): Frame[] {
    if (!this.#isCut) return this.#kept
    const first = this.#kept.findIndex(({ payload }) => payload.includes(LF))
    const frame = this.#kept[first]
    if (!frame) return this.#kept
    const payload = frame.payload.subarray(frame.payload.indexOf(LF) + 1)
    return [{ ...frame, payload }, ...this.#kept.slice(first + 1)]
  }
}

export function isOutput({ type }: Frame): boolean {
  return type === FRAME.output || type === FRAME.errorOutput
}

async function snapshotOf({ isBetween, emulator }: Screen): Promise<Snapshot | undefined> {
  if (!isBetween) return undefined
  await emulator.settle()
  return emulator.canSnapshot ? { ...emulator.size, text: emulator.snapshot() } : undefined
}
