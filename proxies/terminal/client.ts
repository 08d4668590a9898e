/** A user's client that shows only a terminal: its socket, and the protocol's side of it (client-wire.ts). */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { MalformedError } from '../bytes/malformed.ts'
import { FLOOD_MARK, KEEPALIVE_MS, LINGER_MS, SEND_HIGH_WATER } from '../net/limits.ts'
import { ReadTurn } from '../net/read-turns.ts'
import { takeReads } from '../net/shared-read.ts'
import type { ClientProtocol, ClientWire } from './client-wire.ts'
import type { Terminal, TerminalSize } from './wire.ts'

export class TerminalClient {
  /** Receives typed input; Return is CR. Valid during the call only. */
  onTyped: ((bytes: Uint8Array) => void) | undefined
  onResize: ((size: TerminalSize) => void) | undefined
  onBreak: (() => void) | undefined
  /** Called when `congested` has become false. */
  onDrain: (() => void) | undefined
  /** Called once, when the connection has closed. */
  onClosed: (() => void) | undefined

  readonly #socket: Socket
  readonly #wire: ClientWire
  readonly #turn = new ReadTurn(() => this.#flow())
  #paused = true
  #written = 0
  #isEnding = false
  #closed = false

  constructor(socket: Socket, urgent: UrgentData, protocol: ClientProtocol) {
    this.#socket = socket
    this.#wire = protocol({
      write: (bytes) => this.#write(bytes),
      writeUrgent: (bytes) => {
        if (socket.writable) urgent.write(socket, bytes)
      },
      typed: (bytes) => this.onTyped?.(bytes),
      resized: (size) => this.onResize?.(size),
      break: () => this.onBreak?.(),
    })
    socket.setKeepAlive(true, KEEPALIVE_MS)
    if (socket instanceof TLSSocket) socket.on('data', (bytes) => this.#read(bytes))
    else takeReads(socket, (view) => this.#read(view))
    socket.pause()
    socket.on('drain', () => {
      if (!this.congested) this.onDrain?.()
      this.#flow()
    })
    // Any error ends the connection.
    socket.on('error', () => socket.destroy())
    // If no tls.Server made the socket, errors of TLS after its handshake are reported by this event alone.
    socket.on('_tlsError', () => socket.destroy())
    socket.once('close', () => {
      this.#closed = true
      this.#turn.onClosed()
      this.#wire.stop()
      this.onClosed?.()
    })
  }

  start(): void {
    this.#wire.start()
    this.paused = false
  }

  get terminal(): Terminal {
    return this.#wire.terminal
  }

  /** The user that the client names, or undefined if it names none. */
  get user(): Promise<string | undefined> {
    return this.#wire.user
  }

  signedIn(): void {
    this.#wire.signedIn()
  }

  /** Shows output in a terminal's form: line ends are CR LF. The bytes may be overwritten afterwards. */
  show(output: string | Uint8Array): void {
    if (this.#socket.writable && output.length > 0) this.#wire.show(Buffer.from(output as Uint8Array))
  }

  /** While paused, the client is not read. */
  get paused(): boolean {
    return this.#paused
  }

  set paused(paused: boolean) {
    this.#paused = paused
    this.#flow()
  }

  /** Bytes written to the client until now. */
  get written(): number {
    return this.#written
  }

  /** Written bytes that wait to be sent. */
  get waiting(): number {
    return this.#socket.writableLength
  }

  get congested(): boolean {
    return this.#socket.writableLength > SEND_HIGH_WATER
  }

  /** True if so much waits that it can only be replies to a client that sends requests and does not read. */
  get flooded(): boolean {
    return this.#socket.writableLength > FLOOD_MARK
  }

  get closed(): boolean {
    return this.#closed || this.#isEnding
  }

  /** Sends the queued bytes and closes; nothing more is received from the client. */
  close(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#socket.end()
    // Closing with unread input resets the connection, and the last message would be lost.
    this.#socket.resume()
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #flow(): void {
    if (this.#isEnding) return
    if (this.#paused || this.#turn.isResting || this.flooded) this.#socket.pause()
    else this.#socket.resume()
  }

  #write(bytes: Uint8Array): void {
    if (!this.#socket.writable) return
    this.#written += bytes.length
    this.#socket.write(bytes)
  }

  #read(bytes: Uint8Array): void {
    if (this.#isEnding) return
    try {
      this.#wire.receive(bytes)
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error
      this.show(`\r\nsallyport: ${error.message}\r\n`)
      this.close()
    }
    this.#turn.spend(bytes.length)
    // A client that negotiates without reading the replies is not read either.
    this.#flow()
  }
}
