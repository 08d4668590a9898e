/**
 * A target that only has a terminal (Telnet, rlogin), as a leg of the relay: an SSH server (RFC 4254) in
 * memory whose connection has one session channel with one terminal. So all rules of an SSH session apply to
 * it through the same code. All other requests are refused.
 */
import { Buffer } from 'node:buffer'
import type { TerminalTarget } from '../../terminal/target.ts'
import { MAX_CHANNEL_PACKET, MAX_WINDOW } from '../channel/limits.ts'
import {
  buildChannelFailure,
  buildChannelOpenConfirmation,
  buildChannelOpenFailure,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEof,
  buildExitStatus,
  buildRequestFailure,
  buildWindowAdjust,
} from '../codec/build.ts'
import {
  type ChannelRequest,
  dataOf,
  MSG,
  OPEN_FAILURE,
  parseChannelOpen,
  parseChannelRequest,
  parseGlobalRequest,
  windowAdjustOf,
} from '../codec/messages.ts'
import { type PtyRequest, parsePtyRequest, parseSignal, parseWindowChange } from '../codec/requests.ts'
import type { Leg } from '../transport/leg.ts'

/** This end's number of the one channel. */
const CHANNEL = 0

/** The channel as the relay opened it. */
interface Opened {
  id: number
  /** Bytes that the relay still accepts. */
  window: number
  maxPacket: number
}

export class TerminalLeg implements Leg {
  onMessage: ((payload: Buffer) => void) | undefined
  onDrain: (() => void) | undefined
  onClosed: (() => void) | undefined
  /** Unused: there are no keys. */
  mayRekey: (() => boolean) | undefined
  readonly inKex = false
  /** The target's requests are answered at their own pace (target.ts). */
  readonly flooded = false

  readonly #target: TerminalTarget
  #channel: Opened | undefined
  #terminal: PtyRequest | undefined
  #hasStarted = false
  /** Bytes of the relay since the last window adjustment. */
  #consumed = 0
  /** Messages for the relay: they are never delivered within a call of the relay. */
  #queue: Buffer[] = []
  /** Output that waits for the relay's window. */
  #waiting = Buffer.alloc(0)
  #paused = false
  #isOver = false
  #hasClosed = false
  #failure: string | undefined
  #closed = false

  constructor(target: TerminalTarget) {
    this.#target = target
    target.onOutput = (bytes) => this.#output(bytes)
    target.onReady = () => {
      if (!this.#hasClosed) this.#tell(buildWindowAdjust(this.#channel!.id, MAX_WINDOW))
    }
    target.onDrain = () => this.onDrain?.()
    target.onClosed = (failure) => this.#onClosed(failure)
  }

  get closed(): boolean {
    return this.#closed
  }

  get failure(): string | undefined {
    return this.#failure
  }

  /** Set once the one channel has closed. */
  get isSpent(): boolean {
    return this.#hasClosed
  }

  get congested(): boolean {
    return this.#target.congested
  }

  get paused(): boolean {
    return this.#paused
  }

  set paused(paused: boolean) {
    this.#paused = paused
    this.#flow()
  }

  /** These protocols have no keepalive: TCP detects whether the target is there. */
  takeHeard(): boolean {
    return true
  }

  refreshKeys(): void {}

  close(): void {
    this.#target.close()
  }

  destroy(): void {
    this.#target.destroy()
  }

  send(payload: Uint8Array): void {
    if (this.#closed) return
    switch (payload[0]) {
      case MSG.globalRequest:
        if (parseGlobalRequest(payload).wantReply) this.#tell(buildRequestFailure())
        return
      case MSG.channelOpen:
        this.#open(payload)
        return
      case MSG.channelRequest:
        this.#request(parseChannelRequest(payload))
        return
      case MSG.channelData:
        this.#type(dataOf(payload))
        return
      case MSG.channelWindowAdjust:
        this.#channel!.window += windowAdjustOf(payload)
        this.#show()
        return
      case MSG.channelClose:
        this.#close()
        this.#target.close()
        return
      // The end of the client's input does not end a terminal, and there are no requests to answer.
    }
  }

  #open(payload: Uint8Array): void {
    const { type, sender, window, maxPacket } = parseChannelOpen(payload)
    if (type !== 'session' || this.#channel) {
      const words = `the target speaks ${this.#target.protocol}: it shows one terminal, and that once`
      this.#tell(buildChannelOpenFailure(sender, OPEN_FAILURE.administrativelyProhibited, words))
      return
    }
    this.#channel = { id: sender, window, maxPacket: Math.min(maxPacket, MAX_CHANNEL_PACKET) }
    // Nothing can be typed before the login is complete.
    const confirmation = { recipient: sender, sender: CHANNEL, window: 0, maxPacket: MAX_CHANNEL_PACKET }
    this.#tell(buildChannelOpenConfirmation(confirmation))
  }

  #request(request: ChannelRequest): void {
    const granted = this.#granted(request)
    if (!request.wantReply) return
    this.#tell((granted ? buildChannelSuccess : buildChannelFailure)(this.#channel!.id))
  }

  #granted({ type, data }: ChannelRequest): boolean {
    switch (type) {
      case 'pty-req':
        this.#terminal = parsePtyRequest(data)
        return true
      case 'shell':
        return this.#start()
      case 'window-change':
        if (this.#hasStarted) this.#target.resize(parseWindowChange(data))
        else if (this.#terminal) this.#terminal = { ...this.#terminal, ...parseWindowChange(data) }
        return true
      case 'break':
        return this.#target.break()
      case 'signal':
        // The only signal with an equivalent at the other end.
        if (parseSignal(data) !== 'INT') return false
        this.#target.interrupt()
        return true
      default:
        // Includes the environment, by which clients have logged in without a password (CVE-2026-24061).
        return false
    }
  }

  #start(): boolean {
    if (this.#hasStarted || !this.#terminal) return false
    this.#hasStarted = true
    const { terminal: type, columns, rows, widthPixels, heightPixels } = this.#terminal
    this.#target.start({ type, columns, rows, widthPixels, heightPixels })
    return true
  }

  #type(data: Uint8Array): void {
    this.#target.send(data)
    this.#consumed += data.length
    if (this.#consumed < MAX_WINDOW / 2) return
    this.#tell(buildWindowAdjust(this.#channel!.id, this.#consumed))
    this.#consumed = 0
  }

  #output(bytes: Uint8Array): void {
    // The relay has removed the channel.
    if (this.#hasClosed) return
    this.#waiting = this.#waiting.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#waiting, bytes])
    this.#show()
  }

  /** Sends as much waiting output as the relay accepts. */
  #show(): void {
    const channel = this.#channel
    if (!channel || this.#hasClosed) return
    while (this.#waiting.length > 0 && channel.window > 0) {
      const part = this.#waiting.subarray(0, Math.min(channel.window, channel.maxPacket))
      this.#waiting = this.#waiting.subarray(part.length)
      channel.window -= part.length
      this.#tell(buildData(channel.id, part))
    }
    if (this.#isOver && this.#waiting.length === 0) this.#close()
    this.#flow()
  }

  #flow(): void {
    this.#target.paused = this.#paused || this.#waiting.length > 0
  }

  #onClosed(failure: string | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    if (failure === undefined && this.#hasStarted) {
      this.#show()
      return
    }
    this.#failure = failure ?? 'the target closed the connection'
    this.#leave()
  }

  /** Closes the channel as when a shell has ended; the connection stays until the client leaves. */
  #close(): void {
    const channel = this.#channel
    if (!channel || this.#hasClosed) return
    this.#hasClosed = true
    if (this.#isOver) {
      this.#tell(buildEof(channel.id))
      this.#tell(buildExitStatus(channel.id, 0))
    }
    this.#tell(buildClose(channel.id))
  }

  #leave(): void {
    queueMicrotask(() => {
      if (this.#closed) return
      this.#deliver()
      this.#closed = true
      this.onClosed?.()
    })
  }

  #tell(message: Buffer): void {
    this.#queue.push(message)
    if (this.#queue.length === 1) queueMicrotask(() => this.#deliver())
  }

  #deliver(): void {
    for (const message of this.#queue.splice(0)) this.onMessage?.(message)
  }
}
