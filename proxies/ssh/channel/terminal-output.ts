/**
 * A terminal's output on its way to the client. Unlike other streams, it is read from the target and recorded
 * even if the client does not read it: otherwise a client without window could act unseen. Up to HELD_OUTPUT
 * unread bytes are kept; beyond that, the target waits as for other streams. When the client leaves, the
 * target's last output is read for a moment, for the recording alone.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { buildData, buildExtendedData } from '../codec/build.ts'
import { MSG } from '../codec/messages.ts'
import type { ChannelEnd } from './channel-end.ts'
import type { Flow } from './flow.ts'
import { DRAIN_BYTES, DRAIN_MS, DRAIN_QUIET_MS, HELD_OUTPUT, MAX_LATE } from './limits.ts'
import { TakingWatch } from './taking-watch.ts'

/** Small chunks of output share buffers of this size. */
const PIECE = 16 * 1024
const SMALL_PIECE = 1024
/** Beyond this many pieces, standard error joins the other output: a terminal has one screen. */
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
  /** All bytes that ever had to wait, including those sent since. */
  #kept = 0
  /** Messages of the target that must not overtake the kept output. */
  #late: Buffer[] = []
  /** Set once the client accepts no more output. */
  #isDropped = false
  /** Time of the last input or output. */
  #heardAt = performance.now()
  /** Callbacks that wait for the target's silence. */
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

  /** Whether output has waited too long, or so much of it waits that the target is not read. */
  get isStuck(): boolean {
    return this.#taking.isStuck || (this.#flow.credit === 0 && this.isWaiting)
  }

  /** Notes input, whose output should still be recorded. */
  typed(): void {
    this.#heardAt = performance.now()
  }

  /** Forwards or keeps the target's output. `data` is the data of `payload`. */
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

  /**
   * Forwards a message of the target behind its output; copies it if it waits. A client that has closed the channel
   * still gets the exit status: PuTTY closes it at the end of the output. Throws MalformedError.
   */
  follow(payload: Buffer): void {
    if (this.#isDropped && payload[0] !== MSG.channelRequest) return
    if (this.#pieces.length === 0) {
      this.#client.pass(payload)
      return
    }
    if (this.#late.length >= MAX_LATE) throw new MalformedError('too many messages behind data')
    this.#late.push(Buffer.from(payload))
  }

  /** Whether output waits for the client. */
  get isWaiting(): boolean {
    return this.#pieces.length > 0
  }

  /** Sends as much of the kept output as the client accepts now. */
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

  /** Drops the kept output: from now on, output is only recorded. */
  drop(): void {
    this.#isDropped = true
    this.#pieces = []
    this.#late = []
    this.#flow.held = 0
    this.#taking.look(this.#kept, 0)
  }

  /**
   * Calls back once the target is silent for a moment, or at a limit of time or bytes. `awaken`: input that
   * lets a paused terminal continue.
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

  /** Calls the waiting callbacks at once. */
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

  /** Returns a piece with room. */
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
