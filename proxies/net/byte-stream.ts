/**
 * The connection of a desktop's protocol under any encryption: none, TLS that begins in the middle, or frames
 * of the protocol itself. Returns bytes on request during the handshake, and delivers them as they arrive
 * from then on.
 */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type SecureContext, TLSSocket } from 'node:tls'
import { EndedError } from '../bytes/ended.ts'
import { MalformedError } from '../bytes/malformed.ts'
import { KEEPALIVE_MS, LINGER_MS, SEND_HIGH_WATER } from './limits.ts'
import { ReadTurn } from './read-turns.ts'
import { takeReads } from './shared-read.ts'

/** Wraps outgoing bytes in frames. */
export interface Sealer {
  seal(bytes: Uint8Array): Uint8Array
}

/** Unwraps incoming frames: returns the content of those that are complete. Throws MalformedError. */
export interface Opener {
  open(bytes: Uint8Array): Buffer
}

interface Wanted {
  bytes: number
  resolve: (bytes: Buffer) => void
  reject: (error: Error) => void
}

const NOTHING = Buffer.alloc(0)

export class ByteStream {
  /** Receives the bytes of the peer, beginning with those already read. Valid during the call only. */
  onData: ((bytes: Uint8Array) => void) | undefined
  /** Called when `congested` has become false. */
  onDrain: (() => void) | undefined
  /** Called once, when the connection has closed. */
  onClosed: (() => void) | undefined

  readonly #socket: Socket
  #stream: Socket
  readonly #turn = new ReadTurn(() => this.#flow())
  #frames: { sealer: Sealer; opener: Opener } | undefined
  /** Bytes read ahead of any request. */
  #ahead: Buffer = NOTHING
  #wanted: Wanted | undefined
  #paused = true
  #isStartingTls = false
  #isEnding = false
  #closed = false
  #failure: Error | undefined

  /** `socket` comes from proxies/net/shared-read.ts, and has no other reader. */
  constructor(socket: Socket) {
    this.#socket = socket
    this.#stream = socket
    socket.setKeepAlive(true, KEEPALIVE_MS)
    takeReads(socket, (view) => this.#read(view))
    socket.pause()
    this.#listen(socket)
  }

  /** Returns exactly so many bytes, which belong to the caller. Rejects with EndedError or MalformedError. */
  read(bytes: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#wanted = { bytes, resolve, reject }
      this.#serve()
      this.#flow()
    })
  }

  /** Keeps the bytes until they are sent: the caller must not change them. */
  write(bytes: Uint8Array): void {
    if (this.#stream.writable) this.#stream.write(this.#frames ? this.#frames.sealer.seal(bytes) : bytes)
  }

  startFrames(sealer: Sealer, opener: Opener): void {
    const ahead = this.#ahead
    this.#ahead = NOTHING
    this.#frames = { sealer, opener }
    if (ahead.length > 0) this.#read(ahead)
  }

  /** Starts TLS as the server. Resolves after the handshake; rejects with EndedError or MalformedError. */
  async acceptTls(secureContext: SecureContext): Promise<void> {
    const stream = this.#wrap((socket) => new TLSSocket(socket, { isServer: true, secureContext }))
    await this.#handshake(stream, 'secure')
  }

  /**
   * Starts TLS as the client. Returns the server's certificate (DER), or undefined if the server has shown
   * none.
   */
  async startTls(options: ConnectionOptions): Promise<Uint8Array | undefined> {
    const stream = this.#wrap((socket) => connectTls({ ...options, socket, rejectUnauthorized: false }))
    await this.#handshake(stream, 'secureConnect')
    return stream.getPeerX509Certificate()?.raw
  }

  /** While paused, only the bytes that `read` requests are read from the peer. */
  get paused(): boolean {
    return this.#paused
  }

  set paused(paused: boolean) {
    this.#paused = paused
    this.#serve()
    this.#flow()
  }

  /** Bytes that wait to be sent. */
  get queued(): number {
    return this.#stream.writableLength
  }

  get congested(): boolean {
    return this.queued > SEND_HIGH_WATER
  }

  get closed(): boolean {
    return this.#closed || this.#isEnding
  }

  /** Returns the error that broke the connection, or undefined if it is open or was closed in order. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Sends the queued bytes and closes; nothing more is received from the peer. */
  close(): void {
    if (this.closed) return
    this.#isEnding = true
    this.#stream.end()
    // Closing with unread input resets the connection, and the last message would be lost.
    this.#stream.resume()
    setTimeout(() => this.destroy(), LINGER_MS).unref()
  }

  destroy(failure?: Error): void {
    this.#failure ??= failure
    this.#stream.destroy()
    this.#socket.destroy()
  }

  #listen(stream: Socket): void {
    stream.on('drain', () => {
      if (!this.congested) this.onDrain?.()
    })
    // Any error ends the connection.
    stream.on('error', (error) => this.destroy(error))
    stream.on('end', () => this.destroy())
    stream.once('close', () => this.#onGone())
  }

  /**
   * Bytes that arrived before TLS began are not protected by it: an attacker on the path may have inserted
   * them.
   */
  #wrap(wrap: (socket: Socket) => TLSSocket): TLSSocket {
    if (this.#ahead.length > 0) {
      throw new MalformedError(`TLS was expected, ${this.#ahead.length} bytes came before its begin`)
    }
    this.#isStartingTls = true
    this.#socket.pause()
    const stream = wrap(this.#socket)
    this.#stream = stream
    stream.on('data', (bytes: Buffer) => this.#read(bytes))
    // After the handshake, Node reports errors of TLS by this event alone.
    stream.on('_tlsError', (error: Error) => this.destroy(error))
    this.#listen(stream)
    return stream
  }

  #handshake(stream: TLSSocket, event: 'secure' | 'secureConnect'): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wanted = { bytes: 0, resolve: () => undefined, reject }
      stream.once(event, () => {
        this.#isStartingTls = false
        this.#wanted = undefined
        this.#flow()
        resolve()
      })
    })
  }

  #flow(): void {
    // The TLS handshake reads by itself.
    if (this.#isEnding || this.#closed || this.#isStartingTls) return
    const isWanted = this.#wanted !== undefined || !this.#paused
    if (!isWanted || this.#turn.isResting) this.#stream.pause()
    else this.#stream.resume()
  }

  #read(bytes: Uint8Array): void {
    if (this.#isEnding || this.#closed) return
    this.#turn.spend(bytes.length)
    if (!this.#frames) {
      this.#take(bytes)
      return
    }
    let opened: Buffer
    try {
      opened = this.#frames.opener.open(bytes)
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error
      this.destroy(error)
      return
    }
    if (opened.length > 0) this.#take(opened)
  }

  #take(bytes: Uint8Array): void {
    if (this.#ahead.length === 0 && !this.#wanted && !this.#paused && this.onData) {
      this.onData(bytes)
      return
    }
    this.#ahead = Buffer.concat([this.#ahead, bytes])
    this.#serve()
    this.#flow()
  }

  #serve(): void {
    const wanted = this.#wanted
    if (wanted) {
      if (!this.#isStartingTls && wanted.bytes <= this.#ahead.length) {
        this.#wanted = undefined
        const bytes = Buffer.from(this.#ahead.subarray(0, wanted.bytes))
        this.#ahead = this.#ahead.subarray(wanted.bytes)
        wanted.resolve(bytes)
      } else if (this.#closed) {
        this.#wanted = undefined
        wanted.reject(this.#failure instanceof MalformedError ? this.#failure : this.#ended())
      }
    } else if (!this.#paused && this.#ahead.length > 0 && this.onData) {
      const ahead = this.#ahead
      this.#ahead = NOTHING
      this.onData(ahead)
    }
  }

  #ended(): EndedError {
    return new EndedError(this.#failure?.message ?? 'the connection was closed')
  }

  #onGone(): void {
    if (this.#closed) return
    this.#closed = true
    this.#turn.onClosed()
    this.#socket.destroy()
    this.#serve()
    this.onClosed?.()
  }
}
