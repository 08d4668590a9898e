/**
 * Flow control between a client and its target. The target is read as fast as the recording accepts data, so
 * that the recording misses nothing because of a slow client; the client misses bitmaps while its queue is
 * full. Other data may queue up to a limit, and only for a client that still reads. The client is read while
 * the target accepts its data; its input is held while its user could not see the effect.
 */
import { FLOOD_MARK, SEND_HIGH_WATER } from '../../net/limits.ts'
import type { Update } from '../codec/updates.ts'
import { hasInput } from '../connection/session-filter.ts'
import type { RdpClient } from '../front/client.ts'
import { type HeldInput, InputHold } from './input-hold.ts'
import { PictureGate } from './picture-gate.ts'
import { ReadingWatch } from './reading-watch.ts'
import type { SendQueue } from './send-queue.ts'
import type { RdpSession } from './session.ts'
import type { TargetSide } from './target-side.ts'

export interface FlowOptions {
  client: Pick<RdpClient, 'stream'>
  session: Pick<RdpSession, 'isFull' | 'rdp'>
  sendQueue: SendQueue
  /** Returns the current target side. */
  side: () => TargetSide
  /** The caller must call `look` and `balance`. */
  onChange: () => void
}

export class Flow {
  readonly #options: FlowOptions
  readonly #reading: ReadingWatch
  readonly #gate: PictureGate
  readonly #hold = new InputHold()
  /** The target is not read, because of the client. */
  #isHeldUp = false

  constructor(options: FlowOptions) {
    const { client, sendQueue, side, onChange } = options
    this.#options = options
    this.#reading = new ReadingWatch({ stream: client.stream, written: () => sendQueue.written, onChange })
    this.#gate = new PictureGate({
      refresh: (area) => side().refresh(area),
      isLate: () => this.#reading.isLate,
      onOpen: onChange,
    })
  }

  /** New bitmaps are skipped for the client; the target will redraw them. */
  get skips(): boolean {
    return this.#reading.isLate && this.#options.side().filter.drawsAgain
  }

  /** The target offers this desktop. */
  offered(desktop: { width: number; height: number }): void {
    this.#gate.begin(desktop)
  }

  /** The client has confirmed it. */
  confirmed(): void {
    this.#gate.confirmed()
  }

  /** The target has drawn; `isSkipped`: the client does not get the update. */
  drawn(update: Update, isSkipped: boolean): void {
    this.#gate.drawn(update, isSkipped)
  }

  /** The client has no desktop any more; with `isLeft` it has no target either. */
  deactivated(isLeft = false): void {
    this.#gate.close()
    if (isLeft) this.#hold.take()
  }

  /** Holds a PDU of the fast path or the I/O channel if it contains input that must wait. */
  holds(isFast: boolean, pdu: Uint8Array): boolean {
    if (!this.#mustWait || !(isFast || hasInput(pdu))) return false
    this.#hold.add(isFast, pdu)
    return true
  }

  /** Drops the held input. */
  dropInput(): void {
    this.#hold.take()
  }

  /** Returns the held input if it need not wait any more. */
  released(): HeldInput[] {
    return this.#mustWait ? [] : this.#hold.take()
  }

  /** The client has closed; the target is still recorded for a moment. */
  part(): void {
    const { session, side } = this.#options
    side().target.stream.paused = session.isFull
  }

  /** Updates the state of both sides. */
  look(): void {
    const { side } = this.#options
    if (side().target.stream.congested) this.#reading.excuse()
    this.#reading.look()
    const wasHeldUp = this.#isHeldUp
    this.#isHeldUp = this.#holdsUp()
    if (wasHeldUp && !this.#isHeldUp && side().filter.drawsAgain) this.#gate.again()
  }

  /** Pauses or resumes reading from both sides. */
  balance(): void {
    const { session, sendQueue, side } = this.#options
    const client = this.#options.client.stream
    const target = side().target.stream
    const isFull = session.isFull || sendQueue.isFull
    target.paused = isFull || this.#isHeldUp || FLOOD_MARK < target.queued
    client.paused = isFull || target.congested || FLOOD_MARK < client.queued || this.#hold.isFull
  }

  stop(): void {
    this.#reading.stop()
    this.#gate.close()
  }

  #holdsUp(): boolean {
    const { client, side } = this.#options
    if (this.#reading.isAway) return true
    if (!side().filter.drawsAgain) return client.stream.congested
    return (this.#isHeldUp ? SEND_HIGH_WATER : FLOOD_MARK) < client.stream.queued
  }

  /** The user could not see the effect of input now. */
  get #mustWait(): boolean {
    if (this.#gate.isOpen && !this.#reading.isStuck && !this.#isHeldUp) return false
    const { session, side } = this.#options
    const { isIn, filter } = side()
    return isIn && filter.isConfirmed && !session.rdp.viewOnly
  }
}
