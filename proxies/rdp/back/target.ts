/** A connected target. Keeps its messages until a visitor takes over the session, then forwards them. */
import { Buffer } from 'node:buffer'
import type { ByteStream } from '../../net/byte-stream.ts'
import type { BackConnection, BackVisitor } from '../connection/back-connection.ts'
import type { BackProtocol } from '../connection/back-negotiation.ts'
import type { LogonWatch } from './logon-watch.ts'

export interface RdpTargetOptions {
  stream: ByteStream
  protocol: BackProtocol
  /** Watches for the logon. Absent if NLA has proven the account. */
  watch: LogonWatch | undefined
  /** Index of the clipboard in the channels requested from the target. */
  clipboard: number | undefined
  /** Channels from this index on are the bastion's own. */
  channels: number
}

type Told = (visitor: BackVisitor) => void

export class RdpTarget {
  readonly stream: ByteStream
  readonly protocol: BackProtocol
  /** No user input may be sent to the target until the watch reports the logon. */
  readonly watch: LogonWatch | undefined
  readonly #options: RdpTargetOptions
  /** Receives the bytes to send; the callback writes them to the stream. */
  onSend: ((bytes: Uint8Array) => void) | undefined
  #connection: BackConnection | undefined
  #visitor: BackVisitor | undefined
  /** Messages received before there was a visitor: at most those of one chunk of the stream. */
  #kept: Told[] = []
  #hasEnded = false

  constructor(options: RdpTargetOptions) {
    this.stream = options.stream
    this.protocol = options.protocol
    this.watch = options.watch
    this.#options = options
  }

  get connection(): BackConnection {
    return this.#connection!
  }

  /** Set once, before anything is received. */
  set connection(connection: BackConnection) {
    this.#connection = connection
  }

  /** The logon was proven by NLA. */
  get isLogonProven(): boolean {
    return this.watch === undefined
  }

  /** The target has announced the end of the connection. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Messages wait for a visitor. */
  get hasKept(): boolean {
    return this.#kept.length > 0
  }

  /** Receives bytes from the target. Throws as BackConnection.receive does. */
  receive(chunk: Uint8Array): void {
    this.connection.receive(chunk)
  }

  /** Sends bytes written by the connection. */
  send(bytes: Uint8Array): void {
    if (this.onSend) this.onSend(bytes)
    else this.stream.write(bytes)
  }

  get visitor(): BackVisitor | undefined {
    return this.#visitor
  }

  /** Delivers the kept messages at once, in order. */
  set visitor(visitor: BackVisitor | undefined) {
    this.#visitor = visitor
    if (visitor) for (const tell of this.#kept.splice(0)) tell(visitor)
  }

  /** The visitor of the BackConnection. */
  get listener(): BackVisitor {
    return {
      license: (data) => this.#tell(data, (visitor, bytes) => visitor.license(bytes)),
      licensed: () => this.#tell(NOTHING, (visitor) => visitor.licensed()),
      io: (data) => this.#tell(data, (visitor, bytes) => visitor.io(bytes)),
      channel: (index, chunk) => {
        const { clipboard, channels } = this.#options
        if (index === clipboard) this.watch?.sessionSpoke()
        if (index < channels) this.#tell(chunk, (visitor, bytes) => visitor.channel(index, bytes))
      },
      fastPath: (pdu) => this.#tell(pdu, (visitor, bytes) => visitor.fastPath(bytes)),
      disconnect: (reason) => {
        this.#hasEnded = true
        this.#tell(NOTHING, (visitor) => visitor.disconnect(reason))
      },
    }
  }

  #tell(bytes: Uint8Array, tell: (visitor: BackVisitor, bytes: Uint8Array) => void): void {
    if (this.#visitor) {
      tell(this.#visitor, bytes)
      return
    }
    const kept = Buffer.from(bytes)
    this.#kept.push((visitor) => tell(visitor, kept))
  }
}

const NOTHING = new Uint8Array(0)
