/** Syslog over UDP (RFC 5426): one message a datagram, no acknowledgement; what can be lost is lost. */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { type After, Presence } from '../sink.ts'
import type { Sender } from './syslog.ts'

/** Datagrams that may be on their way into the network at once. */
const MAX_IN_FLIGHT = 1000

export interface UdpOptions {
  host: string
  port: number
  after: After
  onDown: (reason: string) => void
}

/** The socket is connected, because only then does the system tell that nobody listens at the other end. */
export class UdpSender implements Sender {
  readonly #options: UdpOptions
  readonly #presence: Presence
  #socket: Socket | undefined
  #connected = false
  #closed = false
  #waiting: Buffer[] = []
  #inFlight = 0
  lost = 0

  constructor(options: UdpOptions) {
    this.#options = options
    this.#presence = new Presence(options.after, options.onDown)
  }

  get queued(): number {
    return this.#waiting.length + this.#inFlight
  }

  send(message: Buffer): void {
    if (this.#closed || this.queued >= MAX_IN_FLIGHT) {
      this.lost++
      return
    }
    this.#waiting.push(message)
    if (!this.#socket) this.#connect()
    else if (this.#connected) this.#flush(this.#socket)
  }

  async close(): Promise<void> {
    this.#closed = true
    const socket = this.#socket
    this.#socket = undefined
    this.lost += this.#waiting.length
    this.#waiting = []
    if (socket) await new Promise<void>((resolve) => socket.close(() => resolve()))
  }

  #connect(): void {
    const { host, port } = this.#options
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    this.#socket = socket
    socket.unref()
    socket.on('error', (error) => this.#failed(socket, error))
    // not as connect's own callback: that one is called for failures too
    socket.on('connect', () => {
      if (this.#socket !== socket) return
      this.#connected = true
      this.#flush(socket)
    })
    socket.connect(port, host)
  }

  #flush(socket: Socket): void {
    for (const message of this.#waiting.splice(0)) {
      this.#inFlight++
      socket.send(message, (error) => {
        this.#inFlight--
        if (error) {
          this.lost++
          this.#presence.failed(error.message)
        } else this.#presence.succeeded()
      })
    }
  }

  /** Refused datagrams leave the socket as it is; a name that did not resolve is tried anew with the next message. */
  #failed(socket: Socket, error: Error): void {
    if (!this.#connected && this.#socket === socket) {
      this.#socket = undefined
      socket.close()
      this.lost += this.#waiting.length
      this.#waiting = []
    }
    this.#presence.failed(error.message)
  }
}
