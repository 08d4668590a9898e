/**
 * The data of one direction of a channel to be sent, in messages of the peer's maximum size and as far as its
 * window allows. Data that must wait is copied.
 */
import { Buffer } from 'node:buffer'
import type { ChannelEnd } from '../channel/channel-end.ts'
import type { Flow } from '../channel/flow.ts'
import { MAX_CHANNEL_PACKET } from '../channel/limits.ts'
import { MSG } from '../codec/messages.ts'
import { setUint32At } from '../codec/writer.ts'
import { ByteQueue } from './byte-queue.ts'

/** byte 94, uint32 recipient, uint32 length (RFC 4254 5.2). */
const HEAD = 9

export class SendQueue {
  readonly #end: ChannelEnd
  readonly #flow: Flow
  readonly #buffer: Buffer
  readonly #isStopped: () => boolean
  readonly #waiting = new ByteQueue()
  #filled = 0

  /**
   * `buffer`: from `messageBuffer`; queues may share it if their uses (`write` to `flush`) do not overlap. Nothing is
   * sent while `isStopped` returns true.
   */
  constructor(end: ChannelEnd, flow: Flow, buffer: Buffer, isStopped: () => boolean = () => false) {
    this.#end = end
    this.#flow = flow
    this.#buffer = buffer
    this.#isStopped = isStopped
  }

  /** Bytes that wait for window. */
  get waiting(): number {
    return this.#waiting.length
  }

  write(bytes: Uint8Array): void {
    if (this.#waiting.length > 0) {
      this.#waiting.append(bytes)
      return
    }
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + this.#limit - this.#filled)
      this.#buffer.set(piece, HEAD + this.#filled)
      this.#filled += piece.length
      at += piece.length
      if (this.#filled >= this.#limit) this.#send()
      if (this.#waiting.length > 0) {
        this.#waiting.append(bytes.subarray(at))
        return
      }
    }
  }

  /** Sends written and waiting data as far as the window allows. */
  flush(): void {
    this.#send()
    while (this.#waiting.length > 0 && this.#room > 0) {
      const piece = this.#waiting.first(Math.min(this.#limit, this.#room))
      this.#buffer.set(piece, HEAD)
      this.#filled = piece.length
      this.#waiting.drop(piece.length)
      this.#message(piece.length)
    }
  }

  drop(): void {
    this.#filled = 0
    this.#waiting.clear()
  }

  get #limit(): number {
    return Math.min(this.#end.maxPacket, MAX_CHANNEL_PACKET)
  }

  /** Bytes that may be sent now. */
  get #room(): number {
    return this.#isStopped() ? 0 : this.#flow.room
  }

  #send(): void {
    const now = Math.min(this.#filled, this.#room)
    if (now < this.#filled) this.#waiting.append(this.#buffer.subarray(HEAD + now, HEAD + this.#filled))
    if (now > 0) this.#message(now)
    this.#filled = 0
  }

  #message(length: number): void {
    const payload = this.#buffer.subarray(0, HEAD + length)
    payload[0] = MSG.channelData
    setUint32At(payload, 5, length)
    this.#filled = 0
    this.#flow.forwarded(length)
    this.#end.pass(payload)
  }
}

export function messageBuffer(): Buffer {
  return Buffer.allocUnsafeSlow(HEAD + MAX_CHANNEL_PACKET)
}
