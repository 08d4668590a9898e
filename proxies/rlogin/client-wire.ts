/**
 * Rlogin toward a user's client (RFC 1282). The client's own user name and port prove nothing and are
 * ignored: only the bastion's own password counts.
 */
import type { ClientSurroundings, ClientWire } from '../terminal/client-wire.ts'
import { UNKNOWN_TERMINAL } from '../terminal/client-wire.ts'
import type { Terminal } from '../terminal/wire.ts'
import { ClientStream, type WindowSize } from './codec/client-stream.ts'
import { CONTROL } from './codec/control.ts'
import { ACCEPTED, HandshakeReader } from './codec/handshake.ts'

/** Silence after which a possible beginning of a window message counts as keys. */
const KEY_MS = 100

export class RloginClientWire implements ClientWire {
  readonly #around: ClientSurroundings
  readonly #handshake = new HandshakeReader()
  readonly #stream: ClientStream
  readonly #user = Promise.withResolvers<string | undefined>()
  #isAccepted = false
  #timer: NodeJS.Timeout | undefined
  #terminal = UNKNOWN_TERMINAL

  constructor(around: ClientSurroundings) {
    this.#around = around
    this.#stream = new ClientStream({
      data: (bytes) => around.typed(bytes),
      windowSize: (size) => this.#resized(size),
    })
  }

  /** The client sends first. */
  start(): void {}

  receive(bytes: Uint8Array): void {
    const typed = this.#isAccepted ? bytes : this.#accept(bytes)
    if (typed === undefined) return
    clearTimeout(this.#timer)
    this.#stream.feed(typed)
    if (this.#stream.isHolding) this.#timer = setTimeout(() => this.#stream.release(), KEY_MS)
  }

  /** A terminal in raw mode needs CR LF unchanged. */
  show(bytes: Uint8Array): void {
    this.#around.write(bytes)
  }

  /** Sent after the handshake: before it a client may not be ready for urgent data. */
  signedIn(): void {
    this.#around.writeUrgent(Uint8Array.of(CONTROL.WINDOW))
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#user.resolve(undefined)
  }

  get terminal(): Terminal {
    return this.#terminal
  }

  get user(): Promise<string | undefined> {
    return this.#user.promise
  }

  /** Returns the input after the handshake, once that is complete. */
  #accept(bytes: Uint8Array): Uint8Array | undefined {
    const read = this.#handshake.feed(bytes)
    if (!read) return undefined
    const { serverUser, terminal } = read.handshake
    this.#isAccepted = true
    if (terminal !== '') this.#terminal = { ...this.#terminal, type: terminal.toLowerCase() }
    this.#around.write(ACCEPTED)
    this.#user.resolve(serverUser)
    return read.rest
  }

  #resized({ columns, rows, pixelWidth, pixelHeight }: WindowSize): void {
    this.#terminal = {
      ...this.#terminal,
      columns: columns || UNKNOWN_TERMINAL.columns,
      rows: rows || UNKNOWN_TERMINAL.rows,
      widthPixels: pixelWidth,
      heightPixels: pixelHeight,
    }
    this.#around.resized(this.#terminal)
  }
}

/** See `TerminalFrontOptions.refusal`. BSD's servers send a byte of one before the reason. */
export function rloginRefusal(reason: string): string {
  return `\x01${reason}\r\n`
}
