/**
 * A client that only has a terminal (Telnet, rlogin), as a leg of the lobby and the relay: an SSH client (RFC
 * 4254) in memory that opens one session channel, requests a terminal and a shell, and closes with it. So the
 * menu and all rules of an SSH session apply to it through the same code.
 */
import { Buffer } from 'node:buffer'
import { isDeepStrictEqual } from 'node:util'
import { SEND_HIGH_WATER } from '../../net/limits.ts'
import type { TerminalClient } from '../../terminal/client.ts'
import type { TerminalSize } from '../../terminal/wire.ts'
import { wordsOf } from '../../wording/errors.ts'
import { MAX_CHANNEL_PACKET } from '../channel/limits.ts'
import {
  buildChannelOpen,
  buildChannelRequest,
  buildClose,
  buildData,
  buildPtyRequest,
  buildRequestFailure,
  buildShell,
  buildWindowAdjust,
} from '../codec/build.ts'
import {
  dataOf,
  extendedDataOf,
  MSG,
  parseChannelOpenConfirmation,
  parseChannelOpenFailure,
  parseGlobalRequest,
  windowAdjustOf,
} from '../codec/messages.ts'
import { Writer } from '../codec/writer.ts'
import type { ClientLeg } from '../transport/leg.ts'

/** This end's number of the one channel. */
const CHANNEL = 0
const NOTHING = Buffer.alloc(0)
/** Bytes of output under way; the output that waits for the client's socket has its own limit. */
const WINDOW = SEND_HIGH_WATER
/**
 * Bytes typed before the target reads any. Above this limit the client is not read; below, it is, because
 * only a read detects that a client has left.
 */
export const MAX_TYPED = 64 * 1024
/** RFC 4335 3: the device chooses the length of a break. */
const BREAK_LENGTH = new Writer(4).uint32(0).finish()

/** The channel after the bastion's confirmation. */
interface Opened {
  id: number
  /** Bytes that may still be typed. */
  window: number
  maxPacket: number
}

export class TerminalClientLeg implements ClientLeg {
  onMessage: ((payload: Buffer) => void) | undefined
  onSend: ((payload: Uint8Array) => void) | undefined
  onDrain: (() => void) | undefined
  onClosed: (() => void) | undefined
  /** Unused: there are no keys. */
  mayRekey: (() => boolean) | undefined
  readonly inKex = false

  readonly #client: TerminalClient
  #channel: Opened | undefined
  /** The size last sent to the bastion. */
  #size: TerminalSize | undefined
  /** Set while the bastion has an open shell: typed bytes may be sent. */
  #isShell = false
  #hasClosed = false
  /** Typed bytes that wait for the channel's window. */
  #typed: Buffer
  /** Bytes of output since the last window adjustment. */
  #shown = 0
  /** Messages for the bastion: they are never delivered within a call of the bastion. */
  #queue: Buffer[] = []
  #isDelivering = false
  #paused = false

  /** `ahead`: bytes typed before the session. */
  constructor(client: TerminalClient, ahead: Uint8Array) {
    this.#client = client
    this.#typed = Buffer.from(ahead)
    client.onTyped = (bytes) => this.#type(bytes)
    client.onResize = (size) => {
      if (this.#isShell) this.#tellSize(size)
    }
    client.onBreak = () => {
      if (this.#isShell) this.#tell(buildChannelRequest(this.#channel!.id, 'break', false, BREAK_LENGTH))
    }
    client.onDrain = () => {
      this.#widen()
      this.onDrain?.()
    }
    client.onClosed = () => {
      this.#queue = []
      this.onClosed?.()
    }
  }

  /** Begins the session. The leg's handlers must be set. */
  begin(): void {
    const open = { type: 'session', sender: CHANNEL, window: WINDOW, maxPacket: MAX_CHANNEL_PACKET }
    this.#tell(buildChannelOpen({ ...open, typeData: NOTHING }))
    this.#flow()
  }

  get closed(): boolean {
    return this.#client.closed
  }

  get congested(): boolean {
    return this.#client.congested
  }

  get flooded(): boolean {
    return this.#client.flooded
  }

  get written(): number {
    return this.#client.written
  }

  get waiting(): number {
    return this.#client.waiting
  }

  get paused(): boolean {
    return this.#paused
  }

  set paused(paused: boolean) {
    this.#paused = paused
    if (!paused && this.#queue.length > 0) queueMicrotask(() => this.#deliver())
    this.#flow()
  }

  /** These protocols have no keepalive: TCP detects whether the client is there. */
  takeHeard(): boolean {
    return true
  }

  refreshKeys(): void {}

  close(): void {
    this.#client.close()
  }

  breach(): void {
    this.#client.close()
  }

  destroy(): void {
    this.#client.destroy()
  }

  send(payload: Uint8Array): void {
    if (this.onSend) this.onSend(payload)
    else this.sendNow(payload)
  }

  sendNow(payload: Uint8Array): void {
    if (this.closed) return
    switch (payload[0]) {
      case MSG.globalRequest:
        if (parseGlobalRequest(payload).wantReply) this.#tell(buildRequestFailure())
        return
      case MSG.channelOpenConfirmation:
        this.#confirmed(payload)
        return
      case MSG.channelOpenFailure: {
        const { description } = parseChannelOpenFailure(payload)
        this.#client.show(`${wordsOf(Buffer.from(description).toString('utf8'))}\r\n`)
        this.#client.close()
        return
      }
      case MSG.channelSuccess:
        this.#isShell = true
        // The terminal's size may have changed while the shell was started.
        this.#tellSize(this.#client.terminal)
        this.#pass()
        return
      case MSG.channelFailure:
        this.#client.show('sallyport: the target refused a shell\r\n')
        this.#close()
        return
      case MSG.channelData:
        this.#show(dataOf(payload))
        return
      case MSG.channelExtendedData:
        this.#show(extendedDataOf(payload))
        return
      case MSG.channelWindowAdjust:
        this.#channel!.window += windowAdjustOf(payload)
        this.#pass()
        return
      case MSG.channelClose:
        this.#close()
        return
      // EOF and exit status have no equivalent here.
    }
  }

  #confirmed(payload: Uint8Array): void {
    const { sender: id, window, maxPacket } = parseChannelOpenConfirmation(payload)
    this.#channel = { id, window, maxPacket: Math.min(maxPacket, MAX_CHANNEL_PACKET) }
    const { type: terminal, ...size } = this.#client.terminal
    this.#size = size
    this.#tell(buildPtyRequest(id, false, { terminal, ...size, modes: NOTHING }))
    this.#tell(buildShell(id, true))
  }

  #tellSize({ columns, rows, widthPixels, heightPixels }: TerminalSize): void {
    const size = { columns, rows, widthPixels, heightPixels }
    if (isDeepStrictEqual(size, this.#size)) return
    this.#size = size
    const data = new Writer(16).uint32(columns).uint32(rows).uint32(widthPixels).uint32(heightPixels)
    this.#tell(buildChannelRequest(this.#channel!.id, 'window-change', false, data.finish()))
  }

  #show(output: Uint8Array): void {
    this.#client.show(output)
    this.#shown += output.length
    this.#widen()
  }

  /** Adjusts the window, unless the client does not read. */
  #widen(): void {
    if (!this.#channel || this.#hasClosed || this.#shown < WINDOW / 2 || this.congested) return
    this.#tell(buildWindowAdjust(this.#channel.id, this.#shown))
    this.#shown = 0
  }

  #type(bytes: Uint8Array): void {
    this.#typed = this.#typed.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#typed, bytes])
    this.#pass()
  }

  /** Sends as many typed bytes as the channel accepts. */
  #pass(): void {
    const channel = this.#channel
    while (channel && this.#isShell && this.#typed.length > 0 && channel.window > 0) {
      const part = this.#typed.subarray(0, Math.min(channel.window, channel.maxPacket))
      this.#typed = this.#typed.subarray(part.length)
      channel.window -= part.length
      this.#tell(buildData(channel.id, part))
    }
    this.#flow()
  }

  #flow(): void {
    if (!this.closed) this.#client.paused = this.#paused || this.#typed.length > MAX_TYPED
  }

  /** Closes the one channel, and the connection with it. */
  #close(): void {
    if (this.#hasClosed) return
    this.#hasClosed = true
    this.#isShell = false
    this.#tell(buildClose(this.#channel!.id))
    this.#client.close()
  }

  #tell(message: Buffer): void {
    this.#queue.push(message)
    if (this.#queue.length === 1) queueMicrotask(() => this.#deliver())
  }

  #deliver(): void {
    if (this.#isDelivering) return
    this.#isDelivering = true
    // A handler may pause the leg, and its messages may add to the queue.
    for (let message = this.#next(); message; message = this.#next()) this.onMessage?.(message)
    this.#isDelivering = false
  }

  #next(): Buffer | undefined {
    return this.#paused ? undefined : this.#queue.shift()
  }
}
