/**
 * A terminal's output on its way to the client. Unlike other streams it is taken from the target, and recorded, whether
 * the client takes it or not: who gives the bastion no window would otherwise act unseen. What the client has not taken
 * is kept, HELD_OUTPUT bytes and no more; then the target waits as everywhere. At the client's end, what the target
 * still says is heard for a moment, for the recording alone.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { buildData, buildExtendedData } from '../codec/build.ts'
import type { ChannelEnd } from './channel-end.ts'
import type { Flow } from './flow.ts'
import { DRAIN_BYTES, DRAIN_MS, DRAIN_QUIET_MS, HELD_OUTPUT, MAX_LATE } from './limits.ts'
import { TakingWatch } from './taking-watch.ts'

/** Small pieces of output are kept together in buffers of this size. */
const PIECE = 16 * 1024
const SMALL_PIECE = 1024
/** Beyond so many pieces what a target says on standard error is kept with the rest: a terminal has one screen. */
const MAX_PIECES = 64

interface Piece {
  bytes: Buffer
  begin: number
  end: number
  isError: boolean
}

export class TerminalOutput {
  readonly #client: ChannelEnd
  readonly #target: ChannelEnd
  readonly #flow: Flow
  readonly #taking = new TakingWatch()
  #pieces: Piece[] = []
  /** Bytes that had to wait until now, whether they still do or not. */
  #kept = 0
  /** Messages of the target that must not overtake what is kept. */
  #late: Buffer[] = []
  /** Nobody takes any more. */
  #isDropped = false
  /** When something was last said by either side. */
  #heardAt = performance.now()
  /** Who waits for the last of it, with the bytes that may still come, while that is waited for. */
  #onSilence: (() => void)[] = []
  #left = DRAIN_BYTES
  #silence: NodeJS.Timeout | undefined
  #expiry: NodeJS.Timeout | undefined

  /** `flow`: target to client. */
  constructor(client: ChannelEnd, target: ChannelEnd, flow: Flow) {
    this.#client = client
    this.#target = target
    this.#flow = flow
    flow.ahead = HELD_OUTPUT
    target.grant(flow, 1)
  }

  /** Output has waited for a while, or there is so much of it that the target is not read. */
  get isStuck(): boolean {
    return this.#taking.isStuck || (this.#flow.credit === 0 && this.isWaiting)
  }

  /** Something was typed, and what comes of it is of interest. */
  typed(): void {
    this.#heardAt = performance.now()
  }

  /** Output of the target, as it came: `data` is the one in `payload`. */
  pass(payload: Buffer, data: Uint8Array, isError: boolean): void {
    this.#heardAt = performance.now()
    if (this.#isDropped) {
      this.#heard(data.length)
    } else if (this.#pieces.length === 0 && data.length <= this.#flow.room) {
      this.#flow.forwarded(data.length)
      this.#client.pass(payload)
    } else {
      this.#keep(data, isError)
      this.resume()
    }
  }

  /** A message of the target that follows its output. It is copied if it has to wait. Throws MalformedError. */
  follow(payload: Buffer): void {
    if (this.#isDropped) return
    if (this.#pieces.length === 0) {
      this.#client.pass(payload)
      return
    }
    if (this.#late.length >= MAX_LATE) throw new MalformedError('too many messages behind data')
    this.#late.push(Buffer.from(payload))
  }

  /** Something waits that the client is still to get. */
  get isWaiting(): boolean {
    return this.#pieces.length > 0
  }

  /** Sends of what waits as much as the client takes now. */
  resume(): void {
    const flow = this.#flow
    for (let piece = this.#pieces[0]; piece && flow.room > 0; piece = this.#pieces[0]) {
      const count = Math.min(flow.room, this.#client.maxPacket, piece.end - piece.begin)
      const part = piece.bytes.subarray(piece.begin, piece.begin + count)
      const build = piece.isError ? buildExtendedData : buildData
      this.#client.pass(build(0, part))
      flow.forwarded(count)
      flow.held -= count
      piece.begin += count
      if (piece.begin === piece.end) this.#pieces.shift()
    }
    this.#taking.look(this.#kept, flow.held)
    if (this.#pieces.length > 0) return
    for (const payload of this.#late.splice(0)) this.#client.pass(payload)
  }

  /** The client takes no more: what still comes is for the recording alone. */
  drop(): void {
    this.#isDropped = true
    this.#pieces = []
    this.#late = []
    this.#flow.held = 0
    this.#taking.look(this.#kept, 0)
  }

  /**
   * Calls back once the target has been silent for a moment, or talks without end. `awaken`: what has to be typed so that
   * it goes on.
   */
  leave(awaken: Uint8Array | undefined, then: () => void): void {
    this.drop()
    if (awaken && !this.#target.closedTo) {
      this.#target.leg.send(buildData(this.#target.id!, awaken))
      this.typed()
    }
    const quiet = this.#heardAt + DRAIN_QUIET_MS - performance.now()
    if (quiet <= 0 && this.#onSilence.length === 0) {
      then()
      return
    }
    this.#onSilence.push(then)
    this.#expiry ??= setTimeout(() => this.stop(), DRAIN_MS)
    this.#silence ??= setTimeout(() => this.#look(), quiet)
    this.#target.grant(this.#flow, 1)
  }

  /** The channel is over: nobody waits any longer. */
  stop(): void {
    clearTimeout(this.#silence)
    clearTimeout(this.#expiry)
    for (const then of this.#onSilence.splice(0)) then()
  }

  #look(): void {
    const quiet = this.#heardAt + DRAIN_QUIET_MS - performance.now()
    if (quiet <= 0) this.stop()
    else this.#silence = setTimeout(() => this.#look(), quiet)
  }

  #heard(bytes: number): void {
    this.#left -= bytes
    if (this.#left <= 0) this.stop()
  }

  #keep(data: Uint8Array, isError: boolean): void {
    this.#flow.held += data.length
    this.#kept += data.length
    for (let rest = data; rest.length > 0; ) {
      const last = this.#lastFor(isError, rest.length)
      const part = rest.subarray(0, last.bytes.length - last.end)
      last.bytes.set(part, last.end)
      last.end += part.length
      rest = rest.subarray(part.length)
    }
  }

  /** A piece with room. */
  #lastFor(isError: boolean, wanted: number): Piece {
    const last = this.#pieces.at(-1)
    const kind = last && this.#pieces.length >= MAX_PIECES ? last.isError : isError
    if (last && last.isError === kind && last.end < last.bytes.length) return last
    const capacity =
      this.#pieces.length >= MAX_PIECES ? PIECE : Math.min(PIECE, Math.max(SMALL_PIECE, wanted))
    const piece = { bytes: Buffer.allocUnsafeSlow(capacity), begin: 0, end: 0, isError: kind }
    this.#pieces.push(piece)
    return piece
  }
}
