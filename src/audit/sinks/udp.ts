/**
 * Syslog over UDP (RFC 5426): one message per datagram, no acknowledgement. Datagrams that the network drops
 * are lost without a trace. But if the receiver's system reports a closed port, or no route exists, sending
 * stops, and the messages of the last moment are sent again. A new connection first tries one message.
 */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { After, ConnectionListener } from '../sink.ts'
import { Settling } from './settling.ts'
import type { Carrier, Message } from './stream.ts'

/** Longest time until a refusal arrives. */
const SETTLE_MS = 500
/** Datagrams sent at once, and the pause after them: a receiver's buffer is small. */
const BURST = 20
const BURST_PAUSE_MS = 5

export interface UdpOptions {
  host: string
  port: number
  after: After
}

/** Connects the socket, because only then does the system report a closed port at the other end. */
export function openUdp(options: UdpOptions, listener: ConnectionListener): Promise<Carrier> {
  const { host, port } = options
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  socket.unref()
  return new Promise((resolve, reject) => {
    socket.once('error', (error) => {
      socket.close()
      reject(error)
    })
    // Not as connect's own callback, which is called for failures too.
    socket.once('connect', () => {
      socket.removeAllListeners('error')
      resolve(new UdpCarrier(socket, options, listener))
    })
    socket.connect(port, host)
  })
}

class UdpCarrier implements Carrier {
  readonly #socket: Socket
  readonly #after: After
  readonly #listener: ConnectionListener
  readonly #settling: Settling
  #hasTried = false
  #failure: Error | undefined
  #isClosed = false

  constructor(socket: Socket, { after }: UdpOptions, listener: ConnectionListener) {
    this.#socket = socket
    this.#after = after
    this.#listener = listener
    this.#settling = new Settling(after, SETTLE_MS, listener.settled)
    socket.on('error', (error) => this.#failed(error))
  }

  async send(messages: readonly Message[]): Promise<void> {
    let rest = messages
    if (!this.#hasTried) {
      await this.#burst(messages.slice(0, 1))
      await this.#pause(SETTLE_MS)
      this.#hasTried = true
      rest = messages.slice(1)
    }
    for (let from = 0; from < rest.length; from += BURST) {
      if (from > 0) await this.#pause(BURST_PAUSE_MS)
      await this.#burst(rest.slice(from, from + BURST))
    }
    if (this.#failure) throw this.#failure
    const last = messages.at(-1)
    if (last) this.#settling.sent(last.sequence)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    if (!this.#failure) {
      await this.#pause(SETTLE_MS)
      if (!this.#failure) this.#settling.proven()
    }
    this.#isClosed = true
    this.#settling.stop()
    await new Promise<void>((resolve) => this.#socket.close(() => resolve()))
  }

  async #burst(messages: readonly Message[]): Promise<void> {
    if (this.#failure) throw this.#failure
    await Promise.all(
      messages.map(
        ({ bytes }) =>
          new Promise<void>((resolve) => {
            this.#socket.send(bytes, (error) => {
              if (error) this.#failed(error)
              resolve()
            })
          }),
      ),
    )
  }

  #failed(error: Error): void {
    if (this.#failure || this.#isClosed) return
    this.#failure = error
    this.#settling.stop()
    this.#listener.broken(error.message)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#after(ms, resolve))
  }
}
