/**
 * A client from its Client Info on, until its end: what it sends goes to whoever shows it something just now, which is
 * the bastion's own screens, then the relay.
 */
import { EndedError } from '../../bytes/ended.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import type { ClientData } from '../codec/client-data.ts'
import type { ClientInfo } from '../codec/client-info.ts'
import { DISCONNECT_REASON } from '../codec/mcs.ts'
import { FrontConnection, type FrontVisitor } from '../connection/front-connection.ts'

/** Who has the client now. Bytes are valid during the call only; MalformedError that is thrown breaks the connection. */
export interface ClientHandler {
  /** Share PDUs on the I/O channel. */
  io(data: Uint8Array): void
  /** Input: a whole PDU. */
  fastPath(pdu: Uint8Array): void
  /** A chunk on the virtual channel of this index in the client's list. */
  channel(index: number, chunk: Uint8Array): void
  /** An answer to a target's licensing, with its security header. */
  license?(data: Uint8Array): void
}

export interface RdpClientOptions {
  stream: ByteStream
  /** As the client has sent them in its X.224 request. */
  requestedProtocols: number
}

export class RdpClient {
  readonly stream: ByteStream
  readonly requestedProtocols: number
  /** What comes while there is none is dropped. */
  handler: ClientHandler | undefined
  /** All of what came together has been taken. */
  onRead: (() => void) | undefined
  /** More may be sent. */
  onDrain: (() => void) | undefined
  /** Takes what is to be sent; it goes by `sendNow` later on. */
  onSend: ((bytes: Uint8Array) => void) | undefined
  /** It has broken the protocol, and nothing more is read of it. */
  onBroken: ((error: Error) => void) | undefined
  /** The connection is gone, once. */
  onClosed: (() => void) | undefined
  readonly #connection: FrontConnection
  #settings: ClientData | undefined
  #info: ClientInfo | undefined
  #isLicensed = false
  #isBroken = false
  /** The Client Info has come, with all that came together with it. Once. */
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

  /** Goes through MCS as far as the Client Info. Rejects with MalformedError, or EndedError. */
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

  /** Its password is an empty one once it was taken. */
  get info(): ClientInfo {
    return this.#info!
  }

  /** What the client is known as in the domain of MCS. */
  get user(): number {
    return this.#connection.user
  }

  /** Licensing is over: it can be offered a desktop. */
  get isLicensed(): boolean {
    return this.#isLicensed
  }

  /** The password of the Client Info, once. */
  takePassword(): string {
    const { password } = this.info
    this.info.password = ''
    return password
  }

  /** Tells it that it needs no license. Only where it is not licensed. */
  license(): void {
    this.#connection.licensed()
    this.#isLicensed = true
  }

  /** Its licensing was a target's, and is over. */
  startSession(): void {
    this.#connection.startSession()
    this.#isLicensed = true
  }

  /** On the I/O channel. Throws RangeError over MCS_DATA_LIMIT. */
  sendIo(data: Uint8Array): void {
    this.#connection.sendIo(data)
  }

  /** A whole PDU, which is kept until it is sent: the caller does not change it. */
  sendFastPath(pdu: Uint8Array): void {
    this.#connection.sendFastPath(pdu)
  }

  /** A chunk with its header. */
  sendChannel(index: number, chunk: Uint8Array): void {
    this.#connection.sendChannel(index, chunk)
  }

  /** Past `onSend`; kept until it is sent. */
  sendNow(bytes: Uint8Array): void {
    this.stream.write(bytes)
  }

  /** Says that the connection ends: nothing is sent or received after it. */
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
