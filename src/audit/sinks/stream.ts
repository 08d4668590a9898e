/**
 * Syslog over TCP (RFC 6587 3.4.1) and TLS (RFC 5425), both with octet counting: `LENGTH SP MESSAGE`.
 *
 * Syslog has no acknowledgement, and bytes that the system accepts for sending may never arrive. So messages
 * count as received when the receiver's system has acknowledged their bytes and the connection has stayed
 * open for a while since; or when the receiver ends the stream after ours has ended, which it does after it
 * has read all of it. Messages sent in the last moment before a connection broke are sent again: they may
 * arrive twice. Messages in the memory of a receiver's program that dies are beyond our control.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { After, Connection, ConnectionListener } from '../sink.ts'
import { Settling } from './settling.ts'

const CONNECT_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 30_000
/** Time for which a connection has to stay open after bytes were acknowledged. */
const SETTLE_MS = 3000
/** The same if the system does not report acknowledged bytes. */
const SETTLE_UNSEEN_MS = 30_000
/** Interval of the checks whether all is acknowledged: the first, and the longest. */
const FIRST_LOOK_MS = 2
const MAX_LOOK_MS = 250
/** Unacknowledged bytes from which on nothing more is sent: an acknowledgement may take tens of milliseconds. */
const MAX_ON_THE_WAY = 1 << 20
/** Time without acknowledgement after which a connection is closed. */
const STALLED_MS = 120_000
/** Time that `close` waits for the receiver's end of the stream. */
const CLOSE_MS = 2000

export interface StreamOptions {
  host: string
  port: number
  /** Absent for plain TCP. `ca`: PEM, absent for the system's authorities. `cert`, `key`: of this end, PEM. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key'>
  after: After
  /** Returns the bytes on their way. Absent if this system does not report them. */
  unacknowledged?: (socket: Socket) => number | undefined
}

/** A message, and its row in the audit log. */
export interface Message {
  sequence: number
  bytes: Buffer
}

/** Sends messages to a receiver of syslog, over one connection. */
export type Carrier = Omit<Connection, 'send'> & { send(messages: readonly Message[]): Promise<void> }

/** Rejects if there is no connection within ten seconds. */
export function openStream(options: StreamOptions, listener: ConnectionListener): Promise<Carrier> {
  const { host, port, tls, after } = options
  const socket = tls
    ? connectTls({
        host,
        port,
        minVersion: 'TLSv1.2',
        // NODE_TLS_REJECT_UNAUTHORIZED would decide otherwise.
        rejectUnauthorized: true,
        ...(isIP(host) ? {} : { servername: host }),
        ...tls,
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

/** The end of a piece of messages in the stream. */
interface Mark {
  sequence: number
  /** Bytes of messages up to here, without those that TLS adds. */
  bytes: number
}

const START: Mark = { sequence: 0, bytes: 0 }

class StreamCarrier implements Carrier {
  readonly #socket: Socket
  readonly #options: StreamOptions
  readonly #settling: Settling
  readonly #closed = Promise.withResolvers<void>()
  /** Ends the wait for the current write; and the one for room. */
  #written: () => void = () => undefined
  #roomy: () => void = () => undefined
  #sent = START
  /** The last piece that the system has accepted; and the last one that is acknowledged. */
  #accepted = START
  #acknowledged = START
  /** Accepted pieces that are not acknowledged. */
  #marks: Mark[] = []
  #isWatching = false
  #isOver = false
  #isClosing = false

  constructor(socket: Socket, options: StreamOptions, listener: ConnectionListener) {
    this.#socket = socket
    this.#options = options
    const settleMs = options.unacknowledged ? SETTLE_MS : SETTLE_UNSEEN_MS
    this.#settling = new Settling(options.after, settleMs, listener.settled)
    let reason = 'the receiver closed the connection'
    // Syslog receivers send nothing: read all the same, to see the end of the stream.
    socket.resume()
    socket.on('error', (error) => {
      reason = error.message
    })
    socket.on('close', (hadError) => {
      this.#isOver = true
      if (this.#isClosing && !hadError && socket.readableEnded) this.#settling.proven()
      this.#settling.stop()
      this.#closed.resolve()
      // The callback of a destroyed socket may never be called.
      this.#written()
      this.#roomy()
      listener.broken(reason)
    })
  }

  async send(messages: readonly Message[]): Promise<void> {
    const last = messages.at(-1)
    if (!last || this.#isOver) return
    const parts = messages.flatMap(({ bytes }) => [Buffer.from(`${bytes.length} `), bytes])
    const piece = Buffer.concat(parts)
    const mark = { sequence: last.sequence, bytes: this.#sent.bytes + piece.length }
    this.#sent = mark
    if (!this.#isWatching) this.#watch().catch((error: Error) => this.#socket.destroy(error))
    // Not a race against the connection's end: each would leave its reactions there.
    await new Promise<void>((resolve) => {
      this.#written = resolve
      this.#socket.write(piece, (error) => {
        if (!error) this.#accept(mark)
        resolve()
      })
    })
    if (this.#isFull() && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#roomy = resolve
      })
    }
    if (this.#isOver) throw new Error('the connection is over')
  }

  async close(): Promise<void> {
    const socket = this.#socket
    if (this.#isOver) return
    this.#isClosing = true
    // Acknowledged bytes count as received if the receiver ends the stream in order.
    if (this.#sent !== START) this.#settling.sent(this.#sent.sequence)
    socket.ref()
    const cancel = this.#options.after(CLOSE_MS, () => socket.destroy())
    socket.end()
    await this.#closed.promise
    cancel()
  }

  #accept(mark: Mark): void {
    this.#accepted = mark
    this.#marks.push(mark)
  }

  #isFull(): boolean {
    return this.#sent.bytes - this.#acknowledged.bytes > MAX_ON_THE_WAY
  }

  /** Follows what the receiver's system acknowledges, until it has all bytes or the connection is closed. */
  async #watch(): Promise<void> {
    const { unacknowledged, after } = this.#options
    this.#isWatching = true
    let before = Number.POSITIVE_INFINITY
    let stalled = 0
    for (let wait = FIRST_LOOK_MS; ; wait = Math.min(2 * wait, MAX_LOOK_MS)) {
      await new Promise<void>((resolve) => after(wait, resolve))
      if (this.#isOver) return
      const left = unacknowledged?.(this.#socket) ?? 0
      const isMore = this.#settleBut(left)
      if (this.#acknowledged === this.#sent) break
      if (isMore) wait = FIRST_LOOK_MS
      stalled = isMore || left < before ? 0 : stalled + wait
      before = left
      if (stalled >= STALLED_MS) {
        this.#socket.destroy(new Error(`the receiver takes nothing for ${STALLED_MS / 1000} s`))
        return
      }
    }
    this.#isWatching = false
  }

  /**
   * Settles the pieces of which nothing is among the last `left` bytes on their way, and returns whether there were
   * any. TLS adds bytes to those that are counted here, so that a piece may settle later, and never earlier.
   */
  #settleBut(left: number): boolean {
    const count = this.#marks.findLastIndex(({ bytes }) => this.#accepted.bytes - bytes >= left) + 1
    const last = this.#marks.splice(0, count).at(-1)
    if (!last) return false
    this.#acknowledged = last
    this.#settling.sent(last.sequence)
    if (!this.#isFull()) this.#roomy()
    return true
  }
}
