/** How far a target's desktop has come, who is to act next, and who takes too long; and what of that the overlay has to know. */
import { StallWatch, type StallWatchOptions } from '../../desktop/stall-watch.ts'
import type { Desktop } from '../codec/capabilities.ts'
import type { Overlay } from '../local/overlay.ts'

/** How long a client may take to agree to a desktop that it is offered. */
export const CONFIRM_MS = 30_000

export interface DesktopWatchOptions extends StallWatchOptions {
  overlay: Overlay
}

export class DesktopWatch {
  readonly #options: DesktopWatchOptions
  readonly #stall: StallWatch
  /** Until the client has agreed to the desktop that it was offered. */
  #offer: NodeJS.Timeout | undefined
  #isBlank = false

  constructor(options: DesktopWatchOptions) {
    this.#options = options
    this.#stall = new StallWatch(options)
  }

  /** The client has agreed to a desktop that the target has not drawn on. */
  get isBlank(): boolean {
    return this.#isBlank
  }

  /** It is a target's turn to offer a desktop. */
  begin(): void {
    this.#isBlank = false
    this.#stall.asked()
  }

  /** Of the target's, bytes. */
  received(bytes: number): void {
    this.#stall.received(bytes)
  }

  /** It is the client's turn. */
  offered(): void {
    this.#stall.answered()
    this.#offer ??= setTimeout(
      () => this.#options.onStall(`the client did not take the desktop in ${CONFIRM_MS / 1000} s`),
      CONFIRM_MS,
    )
  }

  /** It is the target's turn to draw. */
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

  /** The client has no desktop of a target's any more. */
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
