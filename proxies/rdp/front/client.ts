/**
 * A client from its Client Info to its end. Its messages go to the current handler: the bastion's own
 * screens, then the relay.
 */
import { EndedError } from '../../bytes/ended.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import type { ClientData } from '../codec/client-data.ts'
import type { ClientInfo } from '../codec/client-info.ts'
import { DISCONNECT_REASON } from '../codec/mcs.ts'
import { FrontConnection, type FrontVisitor } from '../connection/front-connection.ts'

/** Receives the client's messages, valid during the call only. May throw MalformedError. */
export interface ClientHandler {
  /** Share PDUs on the I/O channel. */
  io(data: Uint8Array): void
  /** Input: a whole PDU. */
  fastPath(pdu: Uint8Array): void
  /** A chunk on the virtual channel with this index in the client's list. */
  channel(index: number, chunk: Uint8Array): void
  /** A response to a target's licensing, with its security header. */
  license?(data: Uint8Array): void
}

export interface RdpClientOptions {
  stream: ByteStream
  /** requestedProtocols of the client's X.224 request. */
  requestedProtocols: number
}

export class RdpClient {
  readonly stream: ByteStream
  readonly requestedProtocols: number
  /** Messages received without a handler are dropped. */
  handler: ClientHandler | undefined
  /** All messages of a received chunk have been handled. */
  onRead: (() => void) | undefined
  /** More data can be sent. */
  onDrain: (() => void) | undefined
  /** Receives the bytes to send; the callback sends them by `sendNow`. */
  onSend: ((bytes: Uint8Array) => void) | undefined
  /** The client broke the protocol; nothing more is read from it. */
  onBroken: ((error: Error) => void) | undefined
  /** The connection has closed. Called once. */
  onClosed: (() => void) | undefined
  readonly #connection: FrontConnection
  #settings: ClientData | undefined
  #info: ClientInfo | undefined
  #isLicensed = false
  #isBroken = false
  /** The Client Info and the data received with it have been handled. Called once. */
  #onLogon: (() => void) | undefined

  private constructor({ stream, requestedProtocols }: RdpClientOptions) {
    this.stream = stream
    this.requestedProtocols = requestedProtocols
    this.#connection = new FrontConnection({
      requestedProtocols,
      visitor: this.#visitor(),
      write: (bytes) => {
        if (this.onSend) this.onSend(bytes)
        else this.sendNow(bytes)
      },
    })
    stream.onDrain = () => this.onDrain?.()
    stream.onClosed = () => this.onClosed?.()
    stream.onData = (chunk) => this.#receive(chunk)
  }

  /** Runs MCS up to the Client Info. Rejects with MalformedError, or EndedError. */
  static receive(options: RdpClientOptions): Promise<RdpClient> {
    return new Promise((resolve, reject) => {
      const client = new RdpClient(options)
      const gone = () => reject(new EndedError('the client closed the connection'))
      client.onBroken = reject
      client.onClosed = gone
      client.#onLogon = () => {
        client.onBroken = undefined
        client.onClosed = undefined
        resolve(client)
      }
      if (client.stream.closed) gone()
      else client.stream.paused = false
    })
  }

  get settings(): ClientData {
    return this.#settings!
  }

  /** The password is empty after `takePassword`. */
  get info(): ClientInfo {
    return this.#info!
  }

  /** The client's user id in the MCS domain. */
  get user(): number {
    return this.#connection.user
  }

  /** Licensing has ended: a desktop can be offered. */
  get isLicensed(): boolean {
    return this.#isLicensed
  }

  /** Returns the password of the Client Info, and drops it. */
  takePassword(): string {
    const { password } = this.info
    this.info.password = ''
    return password
  }

  /** Sends that no license is needed. Call only if the client is not licensed. */
  license(): void {
    this.#connection.licensed()
    this.#isLicensed = true
  }

  /** Ends licensing after a target's messages have completed it. */
  startSession(): void {
    this.#connection.startSession()
    this.#isLicensed = true
  }

  /** Sends on the I/O channel. Throws RangeError over MCS_DATA_LIMIT. */
  sendIo(data: Uint8Array): void {
    this.#connection.sendIo(data)
  }

  /** Sends a whole PDU. Keeps it until it is sent, so the caller must not change it. */
  sendFastPath(pdu: Uint8Array): void {
    this.#connection.sendFastPath(pdu)
  }

  /** Sends a chunk with its header. */
  sendChannel(index: number, chunk: Uint8Array): void {
    this.#connection.sendChannel(index, chunk)
  }

  /** Sends without `onSend`. Keeps the bytes until they are sent. */
  sendNow(bytes: Uint8Array): void {
    this.stream.write(bytes)
  }

  /** Announces the end of the connection: nothing is sent or received after it. */
  sendDisconnect(reason: number = DISCONNECT_REASON.providerInitiated): void {
    this.#connection.close(reason)
  }

  #visitor(): FrontVisitor {
    return {
      settings: (data) => {
        this.#settings = data
      },
      logon: (info) => {
        this.#info = info
      },
      license: (data) => this.handler?.license?.(data),
      io: (data) => this.handler?.io(data),
      channel: (index, chunk) => this.handler?.channel(index, chunk),
      fastPath: (pdu) => {
        if (!this.#isLicensed) throw new MalformedError('no input was expected before there is a desktop')
        this.handler?.fastPath(pdu)
      },
      disconnect: () => this.stream.destroy(),
    }
  }

  #receive(chunk: Uint8Array): void {
    if (this.#isBroken) return
    try {
      this.#connection.receive(chunk)
    } catch (error) {
      this.#isBroken = true
      this.onBroken?.(
        error instanceof MalformedError
          ? new MalformedError(`the client broke the RDP protocol: ${error.message}`)
          : new Error('internal error', { cause: error }),
      )
      return
    }
    if (this.#info) {
      this.#onLogon?.()
      this.#onLogon = undefined
    }
    this.onRead?.()
  }
}
