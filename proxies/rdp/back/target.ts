/** A target that has let the bastion in: its messages until somebody takes the session over, and from then on. */
import { Buffer } from 'node:buffer'
import type { ByteStream } from '../../net/byte-stream.ts'
import type { BackConnection, BackVisitor } from '../connection/back-connection.ts'
import type { BackProtocol } from '../connection/back-negotiation.ts'
import type { LogonWatch } from './logon-watch.ts'

export interface RdpTargetOptions {
  stream: ByteStream
  protocol: BackProtocol
  /** Whether the account is in; undefined: it has been proven. */
  watch: LogonWatch | undefined
  /** Where the clipboard is in the list of channels that the target was asked for. */
  clipboard: number | undefined
  /** Channels from here on are the bastion's own. */
  channels: number
}

type Told = (visitor: BackVisitor) => void

export class RdpTarget {
  readonly stream: ByteStream
  readonly protocol: BackProtocol
  /** Until it says that the account is in, nothing that the user types may go to the target. */
  readonly watch: LogonWatch | undefined
  readonly #options: RdpTargetOptions
  /** Takes what is to be sent; it goes to the stream later on. */
  onSend: ((bytes: Uint8Array) => void) | undefined
  #connection: BackConnection | undefined
  #visitor: BackVisitor | undefined
  /** What has come before there was a visitor: no more than one piece of what the stream has read. */
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

  /** Only once, before anything is received. */
  set connection(connection: BackConnection) {
    this.#connection = connection
  }

  /** By NLA, which lets nobody in with a wrong password. */
  get isLogonProven(): boolean {
    return this.watch === undefined
  }

  /** The target has said that it ends the connection, whether there was a visitor to tell or not. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Something has come that no visitor has been told. */
  get hasKept(): boolean {
    return this.#kept.length > 0
  }

  /** Bytes of the target's. Throws as BackConnection.receive. */
  receive(chunk: Uint8Array): void {
    this.connection.receive(chunk)
  }

  /** What the connection writes. */
  send(bytes: Uint8Array): void {
    if (this.onSend) this.onSend(bytes)
    else this.stream.write(bytes)
  }

  get visitor(): BackVisitor | undefined {
    return this.#visitor
  }

  /** Is told at once what has come before, in its order. */
  set visitor(visitor: BackVisitor | undefined) {
    this.#visitor = visitor
    if (visitor) for (const tell of this.#kept.splice(0)) tell(visitor)
  }

  /** What the connection tells. */
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
