/**
 * Tracks a target's desktop from the offer to the first update, limits how long client and target may take,
 * and informs the overlay.
 */
import { StallWatch, type StallWatchOptions } from '../../desktop/stall-watch.ts'
import type { Desktop } from '../codec/capabilities.ts'
import type { Overlay } from '../local/overlay.ts'

/** Milliseconds for a client to confirm an offered desktop. */
export const CONFIRM_MS = 30_000

export interface DesktopWatchOptions extends StallWatchOptions {
  overlay: Overlay
}

export class DesktopWatch {
  readonly #options: DesktopWatchOptions
  readonly #stall: StallWatch
  /** Runs until the client has confirmed the offered desktop. */
  #offer: NodeJS.Timeout | undefined
  #isBlank = false

  constructor(options: DesktopWatchOptions) {
    this.#options = options
    this.#stall = new StallWatch(options)
  }

  /** The client has confirmed a desktop that the target has not drawn on. */
  get isBlank(): boolean {
    return this.#isBlank
  }

  /** Waits for the target to offer a desktop. */
  begin(): void {
    this.#isBlank = false
    this.#stall.asked()
  }

  /** Counts bytes from the target. */
  received(bytes: number): void {
    this.#stall.received(bytes)
  }

  /** Waits for the client to confirm. */
  offered(): void {
    this.#stall.answered()
    this.#offer ??= setTimeout(
      () => this.#options.onStall(`the client did not confirm the desktop in ${CONFIRM_MS / 1000} s`),
      CONFIRM_MS,
    )
  }

  /** Waits for the target to draw. */
  confirmed(desktop: Desktop | undefined): void {
    this.#agreed()
    if (desktop) this.#options.overlay.desktop(desktop)
    this.#isBlank = true
    this.#stall.asked()
  }

  painted(): void {
    this.#isBlank = false
    this.#stall.updated()
    this.#options.overlay.painted()
  }

  /** The client shows no desktop of a target any more. */
  deactivated(): void {
    this.#agreed()
    this.#isBlank = false
    this.#options.overlay.deactivated()
  }

  stop(): void {
    this.#agreed()
    this.#stall.stop()
    this.#options.overlay.close()
  }

  #agreed(): void {
    clearTimeout(this.#offer)
    this.#offer = undefined
  }
}
