/**
 * A person's client that shows a terminal and has nothing else: its socket, and the protocol's side of it
 * (client-wire.ts).
 */
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
  /** What is typed; Return is CR. Valid during the call only. */
  onTyped: ((bytes: Uint8Array) => void) | undefined
  onResize: ((size: TerminalSize) => void) | undefined
  onBreak: (() => void) | undefined
  /** `congested` has become false. */
  onDrain: (() => void) | undefined
  /** The connection is gone, once. */
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
    // What is wrong with the connection is its end.
    socket.on('error', () => socket.destroy())
    // What breaks TLS after its handshake is told so alone where no tls.Server has made the socket.
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

  /** Whom the client says that it wants to be; undefined: it does not say. */
  get user(): Promise<string | undefined> {
    return this.#wire.user
  }

  signedIn(): void {
    this.#wire.signedIn()
  }

  /** Output, as a terminal takes it: ends of lines are CR LF. The bytes may be overwritten afterwards. */
  show(output: string | Uint8Array): void {
    if (this.#socket.writable && output.length > 0) this.#wire.show(Buffer.from(output as Uint8Array))
  }

  /** While paused nothing is read from the client. */
  get paused(): boolean {
    return this.#paused
  }

  set paused(paused: boolean) {
    this.#paused = paused
    this.#flow()
  }

  /** Bytes for the client until now. */
  get written(): number {
    return this.#written
  }

  /** Those among them that its connection has not taken. */
  get waiting(): number {
    return this.#socket.writableLength
  }

  get congested(): boolean {
    return this.#socket.writableLength > SEND_HIGH_WATER
  }

  /** What waits can only be answers to a client that asks and does not read them. */
  get flooded(): boolean {
    return this.#socket.writableLength > FLOOD_MARK
  }

  get closed(): boolean {
    return this.#closed || this.#isEnding
  }

  /** Sends what waits, and closes; nothing more is heard of the client. */
  close(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#socket.end()
    // Closing over what has come unread resets the connection, and the last words would be lost.
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
    // A client that negotiates and does not read what it is answered is not heard either.
    this.#flow()
  }
}
