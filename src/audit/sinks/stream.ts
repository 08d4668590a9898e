/**
 * Syslog over TCP (RFC 6587 3.4.1) and TLS (RFC 5425), both with octet counting: `LENGTH SP MESSAGE`.
 *
 * While the receiver is away messages wait in memory up to a bound. One that was handed to the system when the
 * connection broke is sent again: it may arrive twice. Syslog has no acknowledgement, so what the system had
 * taken and the receiver never read is lost without a trace here; the database has it.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type After, Presence } from '../sink.ts'
import type { Sender } from './syslog.ts'

/** Bytes that wait; what comes on top is given up. */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024
const CONNECT_TIMEOUT_MS = 10_000
const FIRST_BACK_OFF_MS = 1000
const MAX_BACK_OFF_MS = 60_000
const KEEP_ALIVE_MS = 30_000
/** How long `close` waits for what can still be sent. */
const FLUSH_MS = 2000
/** Frames that were taken from the queue's front before it is moved together. */
const COMPACT_AFTER = 1024

export interface StreamOptions {
  host: string
  port: number
  /** Absent: plain TCP. `ca`: PEM; absent: the system's authorities. */
  tls?: { ca?: string }
  after: After
  onDown: (reason: string) => void
}

export class StreamSender implements Sender {
  readonly #options: StreamOptions
  readonly #presence: Presence
  #socket: Socket | undefined
  #connected = false
  #closing = false
  #backOff = FIRST_BACK_OFF_MS
  #cancelRetry: (() => void) | undefined
  #frames: Buffer[] = []
  #first = 0
  /** Frames that the socket was given and has not yet handed to the system. */
  #inFlight: Buffer[] = []
  #bytes = 0
  lost = 0

  constructor(options: StreamOptions) {
    this.#options = options
    this.#presence = new Presence(options.after, options.onDown)
    this.#connect()
  }

  get queued(): number {
    return this.#frames.length - this.#first + this.#inFlight.length
  }

  send(message: Buffer): void {
    const frame = Buffer.concat([Buffer.from(`${message.length} `), message])
    if (this.#closing || this.#bytes + frame.length > MAX_QUEUED_BYTES) {
      this.lost++
      return
    }
    this.#bytes += frame.length
    this.#frames.push(frame)
    this.#flush()
  }

  async close(): Promise<void> {
    this.#closing = true
    this.#cancelRetry?.()
    const socket = this.#socket
    if (socket && this.#connected) {
      socket.ref()
      await new Promise<void>((resolve) => {
        const cancel = this.#options.after(FLUSH_MS, () => socket.destroy())
        socket.once('close', () => {
          cancel()
          resolve()
        })
        this.#flush()
        if (this.queued === 0) socket.end()
      })
    }
    socket?.destroy()
    this.lost += this.queued
    this.#frames = []
    this.#first = 0
    this.#inFlight = []
  }

  #connect(): void {
    const { host, port, tls } = this.#options
    const socket = tls
      ? connectTls({
          host,
          port,
          minVersion: 'TLSv1.2',
          ...(isIP(host) ? {} : { servername: host }),
          ...(tls.ca === undefined ? {} : { ca: tls.ca }),
        })
      : connectTcp({ host, port })
    this.#socket = socket
    let reason = 'the receiver closed the connection'
    socket.unref()
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    const cancelTimeout = this.#options.after(CONNECT_TIMEOUT_MS, () =>
      socket.destroy(new Error(`no connection within ${CONNECT_TIMEOUT_MS / 1000} s`)),
    )
    socket.on(tls ? 'secureConnect' : 'connect', () => {
      cancelTimeout()
      this.#connected = true
      this.#backOff = FIRST_BACK_OFF_MS
      this.#presence.succeeded()
      this.#flush()
    })
    // syslog receivers send nothing: what comes is read, so that the end of the stream is seen
    socket.resume()
    socket.on('drain', () => this.#flush())
    socket.on('error', (error) => {
      reason = error.message
    })
    socket.on('close', () => {
      cancelTimeout()
      this.#disconnected(reason)
    })
  }

  #disconnected(reason: string): void {
    this.#connected = false
    this.#socket = undefined
    this.#frames = [...this.#inFlight, ...this.#frames.slice(this.#first)]
    this.#first = 0
    this.#inFlight = []
    if (this.#closing) return
    this.#presence.failed(reason)
    this.#cancelRetry = this.#options.after(this.#backOff, () => this.#connect())
    this.#backOff = Math.min(this.#backOff * 2, MAX_BACK_OFF_MS)
  }

  #flush(): void {
    const socket = this.#socket
    if (!socket || !this.#connected) return
    while (this.#first < this.#frames.length && !socket.writableNeedDrain) {
      const frame = this.#frames[this.#first++]!
      this.#inFlight.push(frame)
      socket.write(frame, (error) => {
        if (error || this.#socket !== socket) return
        this.#inFlight.shift()
        this.#bytes -= frame.length
        if (this.#closing && this.queued === 0) socket.end()
      })
    }
    if (this.#first > COMPACT_AFTER) {
      this.#frames = this.#frames.slice(this.#first)
      this.#first = 0
    }
  }
}
