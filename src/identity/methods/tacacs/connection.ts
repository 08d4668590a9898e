/**
 * A connection to a TACACS+ server with its sessions: one, or as many as wanted if the server agrees to single-connect
 * (RFC 8907 4.3). What the server may send is bounded in bytes and in packets; each breach ends the connection.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import {
  encodePacket,
  HEADER_BYTES,
  type Header,
  LAST_SEQUENCE,
  obscure,
  type PacketType,
  readHeader,
  TacacsError,
} from './packet.ts'

/** Packets for sessions that have ended, which may have crossed our end of them, before a server counts as broken. */
const MAX_STRAYS = 64
/** Milliseconds after which an unused connection closes. */
const IDLE_MS = 120_000
const KEEP_ALIVE_MS = 30_000

interface Waiting {
  resolve: (body: Buffer) => void
  reject: (error: TacacsError) => void
}

/** One session: requests with odd numbers, replies with even ones. */
export class TacacsSession {
  readonly id: number
  readonly type: PacketType
  readonly minor: number
  readonly connection: TacacsConnection
  sequence = -1
  waiting: Waiting | undefined
  readonly onEnded: () => void

  constructor(
    connection: TacacsConnection,
    id: number,
    type: PacketType,
    minor: number,
    onEnded: () => void,
  ) {
    this.connection = connection
    this.onEnded = onEnded
    this.id = id
    this.type = type
    this.minor = minor
  }

  /** Sends a body, and resolves with the body of the reply. @throws TacacsError */
  ask(body: Uint8Array, timeoutMs: number, signal: AbortSignal): Promise<Buffer> {
    return this.connection.ask(this, body, timeoutMs, signal)
  }

  /** Sends a body that has no reply, and ends the session. */
  tell(body: Uint8Array): void {
    this.connection.tell(this, body)
  }

  /** Ends the session; without single-connect, the connection too. */
  close(): void {
    this.connection.release(this)
  }
}

export interface ConnectionOptions {
  /** For messages: `host:port`. */
  name: string
  address: string
  port: number
  key: Uint8Array
  /** Asks the server for single-connect. */
  singleConnect: boolean
  timeoutMs: number
  /** Called when the server has agreed to single-connect. Returns whether the connection is to be kept for it. */
  onShared: (connection: TacacsConnection) => boolean
  /** Called once, when the connection is of no use any more. */
  onClosed: (connection: TacacsConnection) => void
}

export class TacacsConnection {
  readonly #options: ConnectionOptions
  readonly #socket: Socket
  readonly #sessions = new Map<number, TacacsSession>()
  #received: Buffer = Buffer.alloc(0)
  #strays = 0
  #isFirst = true
  /** Whether it is kept for several sessions. */
  isShared = false
  isOpen = true

  private constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket
    this.#options = options
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    socket.setTimeout(IDLE_MS, () => {
      if (this.#sessions.size === 0) this.close()
    })
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('error', (error) => this.#fail(error.message))
    socket.on('close', () =>
      this.#fail(
        'it closed the connection without an answer: does it know this address and this shared secret?',
      ),
    )
  }

  /** @throws TacacsError */
  static open(options: ConnectionOptions, signal: AbortSignal): Promise<TacacsConnection> {
    const { name, address, port, timeoutMs } = options
    return new Promise((resolve, reject) => {
      const socket = connect({ host: address, port })
      const fail = (reason: string) => {
        done()
        socket.destroy()
        reject(new TacacsError(`${name}: ${reason}`))
      }
      const onError = (error: Error) => fail(error.message)
      const onAbort = () => fail('given up')
      const timer = setTimeout(() => fail(`no connection to ${address} within ${timeoutMs} ms`), timeoutMs)
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        socket.removeListener('error', onError)
        // Errors of a destroyed socket have no other listener.
        socket.on('error', () => undefined)
      }
      socket.on('error', onError)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      socket.once('connect', () => {
        done()
        resolve(new TacacsConnection(socket, options))
      })
    })
  }

  get address(): string {
    return this.#options.address
  }

  /** Begins a session. A connection that is not shared has a single one. */
  session(type: PacketType, minor: number, onEnded: () => void): TacacsSession {
    let id: number
    do id = randomBytes(4).readUInt32BE()
    while (this.#sessions.has(id))
    const session = new TacacsSession(this, id, type, minor, onEnded)
    this.#sessions.set(id, session)
    // A sign-in under way keeps the process; an idle connection does not.
    this.#socket.ref()
    return session
  }

  ask(session: TacacsSession, body: Uint8Array, timeoutMs: number, signal: AbortSignal): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const fail = (error: TacacsError) => {
        done()
        this.release(session)
        reject(error)
      }
      const late = () => fail(this.#error(`no answer within ${timeoutMs} ms`))
      const onAbort = () => fail(this.#error('given up'))
      const timer = setTimeout(late, timeoutMs)
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        session.waiting = undefined
      }
      if (signal.aborted || !this.isOpen || session.waiting || !this.#sessions.has(session.id)) {
        fail(this.#error(signal.aborted ? 'given up' : 'the connection has closed'))
        return
      }
      signal.addEventListener('abort', onAbort, { once: true })
      session.waiting = {
        resolve: (reply) => {
          done()
          resolve(reply)
        },
        reject: fail,
      }
      try {
        this.#send(session, body)
      } catch (error) {
        fail(error as TacacsError)
      }
    })
  }

  tell(session: TacacsSession, body: Uint8Array): void {
    if (this.isOpen && this.#sessions.has(session.id) && session.sequence + 2 < LAST_SEQUENCE)
      this.#send(session, body)
    this.release(session)
  }

  release(session: TacacsSession): void {
    if (this.#sessions.delete(session.id)) session.onEnded()
    if (!this.isShared) {
      this.close()
      return
    }
    if (this.#sessions.size === 0) this.#socket.unref()
  }

  /** Closes it; its sessions fail. */
  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#options.onClosed(this)
    // Bytes on their way, such as an abort, still go.
    this.#socket.end()
    this.#socket.resume()
    setTimeout(() => this.#socket.destroy(), this.#options.timeoutMs).unref()
    this.#failAll(this.#error('the connection has closed'))
  }

  #send(session: TacacsSession, body: Uint8Array): void {
    const sequence = session.sequence + 2
    if (sequence > LAST_SEQUENCE) throw this.#error('the dialogue has too many rounds')
    session.sequence = sequence
    const isSingleConnect = this.#options.singleConnect && this.#isFirst
    this.#isFirst = false
    const { id, type, minor } = session
    this.#socket.write(
      encodePacket({ type, minor, sequence, session: id, isSingleConnect }, body, this.#options.key),
    )
  }

  #take(chunk: Buffer): void {
    if (!this.isOpen) return
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    try {
      while (this.isOpen && this.#received.length >= HEADER_BYTES) {
        const header = readHeader(this.#received)
        const end = HEADER_BYTES + header.length
        if (this.#received.length < end) return
        const body = this.#received.subarray(HEADER_BYTES, end)
        this.#received = this.#received.subarray(end)
        this.#deliver(header, body)
      }
    } catch (error) {
      this.#fail((error as Error).message)
    }
  }

  #deliver(header: Header, body: Buffer): void {
    const session = this.#sessions.get(header.session)
    if (!session) {
      if (!this.isShared || ++this.#strays > MAX_STRAYS)
        throw new TacacsError(
          `expected a reply to a session of this connection, got session ${header.session}`,
        )
      return
    }
    const { waiting, sequence, type } = session
    if (!waiting) throw new TacacsError('expected one reply to each request, got a second one')
    if (header.type !== type) throw new TacacsError(`expected a reply of type ${type}, got ${header.type}`)
    if (header.sequence !== sequence + 1)
      throw new TacacsError(`expected sequence number ${sequence + 1}, got ${header.sequence}`)
    this.#strays = 0
    if (header.isSingleConnect && this.#options.singleConnect && !this.isShared && sequence === 1) {
      this.isShared = this.#options.onShared(this)
    }
    waiting.resolve(obscure(body, header, this.#options.key))
  }

  #fail(reason: string): void {
    if (this.isOpen) {
      this.isOpen = false
      this.#options.onClosed(this)
      this.#socket.destroy()
    }
    this.#failAll(this.#error(reason))
  }

  #failAll(error: TacacsError): void {
    const sessions = [...this.#sessions.values()]
    this.#sessions.clear()
    for (const { waiting, onEnded } of sessions) {
      onEnded()
      waiting?.reject(error)
    }
  }

  #error(reason: string): TacacsError {
    return new TacacsError(`${this.#options.name}: ${reason}`)
  }
}
