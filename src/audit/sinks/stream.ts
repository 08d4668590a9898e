/**
 * Syslog over TCP (RFC 6587 3.4.1) and TLS (RFC 5425), both with octet counting: `LENGTH SP MESSAGE`.
 *
 * Syslog has no acknowledgement, and what a system has taken for sending says nothing of the receiver. So messages count
 * as received when the receiver's system has acknowledged their bytes and the connection has stood for a while since;
 * or when it answers the end of the stream with its own, which it does after it has read all of it. What was sent in
 * the last moment before a connection broke goes out again: it may arrive twice. What a receiver's program holds in
 * memory of its own when it dies is beyond what can be seen from here.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { After, Connection, ConnectionListener } from '../sink.ts'
import { Settling } from './settling.ts'

const CONNECT_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 30_000
/** How long a connection has to stand after bytes were acknowledged. */
const SETTLE_MS = 3000
/** The same where the system does not tell what is acknowledged. */
const SETTLE_UNSEEN_MS = 30_000
/** Between two looks whether all is acknowledged: at first, and at most. */
const FIRST_LOOK_MS = 2
const MAX_LOOK_MS = 250
/** A receiver that acknowledges nothing for so long is given up. */
const STALLED_MS = 120_000
/** How long `close` waits for the receiver's end of the stream. */
const CLOSE_MS = 2000

export interface StreamOptions {
  host: string
  port: number
  /** Absent: plain TCP. `ca`: PEM; absent: the system's authorities. */
  tls?: { ca?: string }
  after: After
  /** Bytes on their way; absent: this system does not tell. */
  unacknowledged?: (socket: Socket) => number | undefined
}

/** A message, and the row of the audit log that it is of. */
export interface Message {
  sequence: number
  bytes: Buffer
}

/** What carries messages to a receiver of syslog, while it lasts. */
export type Carrier = Omit<Connection, 'send'> & { send(messages: readonly Message[]): Promise<void> }

/** Rejects when there is no connection within ten seconds. */
export function openStream(options: StreamOptions, listener: ConnectionListener): Promise<Carrier> {
  const { host, port, tls, after } = options
  const socket = tls
    ? connectTls({
        host,
        port,
        minVersion: 'TLSv1.2',
        ...(isIP(host) ? {} : { servername: host }),
        ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      })
    : connectTcp({ host, port })
  socket.unref()
  socket.setKeepAlive(true, KEEP_ALIVE_MS)
  return new Promise((resolve, reject) => {
    const cancel = after(CONNECT_TIMEOUT_MS, () =>
      socket.destroy(new Error(`no connection within ${CONNECT_TIMEOUT_MS / 1000} s`)),
    )
    socket.once('error', reject)
    socket.once('close', () => {
      cancel()
      reject(new Error('the receiver closed the connection'))
    })
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      cancel()
      resolve(new StreamCarrier(socket, options, listener))
    })
  })
}

class StreamCarrier implements Carrier {
  readonly #socket: Socket
  readonly #options: StreamOptions
  readonly #settling: Settling
  readonly #closed = Promise.withResolvers<void>()
  /** Ends the wait for what is being written. */
  #written: () => void = () => undefined
  #isOver = false
  #isClosing = false
  #lastSent = 0

  constructor(socket: Socket, options: StreamOptions, listener: ConnectionListener) {
    this.#socket = socket
    this.#options = options
    const settleMs = options.unacknowledged ? SETTLE_MS : SETTLE_UNSEEN_MS
    this.#settling = new Settling(options.after, settleMs, listener.settled)
    let reason = 'the receiver closed the connection'
    // syslog receivers send nothing: what comes is read, so that the end of the stream is seen
    socket.resume()
    socket.on('error', (error) => {
      reason = error.message
    })
    socket.on('close', (hadError) => {
      this.#isOver = true
      if (this.#isClosing && !hadError && socket.readableEnded) this.#settling.proven()
      this.#settling.stop()
      this.#closed.resolve()
      // A callback of a socket that is destroyed need not come.
      this.#written()
      listener.broken(reason)
    })
  }

  async send(messages: readonly Message[]): Promise<void> {
    const last = messages.at(-1)
    if (!last || this.#isOver) return
    const socket = this.#socket
    this.#lastSent = last.sequence
    // Not a race against the connection's end: each would leave its reactions there.
    await new Promise<void>((resolve) => {
      this.#written = resolve
      socket.cork()
      for (const { bytes } of messages) {
        socket.write(`${bytes.length} `)
        socket.write(bytes, bytes === last.bytes ? () => resolve() : undefined)
      }
      socket.uncork()
    })
    await this.#acknowledged()
    if (this.#isOver) throw new Error('the connection is over')
    this.#settling.sent(last.sequence)
  }

  async close(): Promise<void> {
    const socket = this.#socket
    if (this.#isOver) return
    this.#isClosing = true
    // What is acknowledged here stands as far as the receiver ends the stream in order.
    if (this.#lastSent > 0) this.#settling.sent(this.#lastSent)
    socket.ref()
    const cancel = this.#options.after(CLOSE_MS, () => socket.destroy())
    socket.end()
    await this.#closed.promise
    cancel()
  }

  /** Resolves when the receiver's system has all that was written, or the connection is over. */
  async #acknowledged(): Promise<void> {
    const { unacknowledged, after } = this.#options
    if (!unacknowledged) return
    let before = Number.POSITIVE_INFINITY
    let stalled = 0
    for (let wait = FIRST_LOOK_MS; !this.#isOver; wait = Math.min(2 * wait, MAX_LOOK_MS)) {
      const left = unacknowledged(this.#socket)
      if (!left) return
      stalled = left < before ? 0 : stalled + wait
      before = left
      if (stalled >= STALLED_MS) {
        this.#socket.destroy(new Error(`the receiver takes nothing for ${STALLED_MS / 1000} s`))
        return
      }
      await new Promise<void>((resolve) => after(wait, resolve))
    }
  }
}
