/** The server's end of a protocol by which a user's client shows a terminal. */
import type { Terminal, TerminalSize } from './wire.ts'

/** The connection and its user, for the protocol's side. */
export interface ClientSurroundings {
  write(bytes: Uint8Array): void
  /** Writes with the last byte urgent, if possible. */
  writeUrgent(bytes: Uint8Array): void
  /** Receives typed input; Return is CR. Valid during the call only. */
  typed(bytes: Uint8Array): void
  resized(size: TerminalSize): void
  /** A break on the line. */
  break(): void
}

/** The server's end of a protocol, without its socket. */
export interface ClientWire {
  /** Called when the connection is ready. */
  start(): void
  /** The bytes are valid during the call only. Throws MalformedError: the connection cannot continue. */
  receive(bytes: Uint8Array): void
  /** Shows output in a terminal's form. The bytes belong to the wire from now on. */
  show(bytes: Uint8Array): void
  /** Sends the messages that begin a session, after the sign-in. */
  signedIn(): void
  /** Called when the connection has closed. */
  stop(): void
  /** The client's terminal, as reported so far. */
  readonly terminal: Terminal
  /** The user that the client names, or undefined if it names none. Never rejects. */
  readonly user: Promise<string | undefined>
}

/** Makes the wire of one connection. */
export type ClientProtocol = (around: ClientSurroundings) => ClientWire

/** The terminal of a client that reports none: no escape sequences, and the standard size of 80 × 24. */
export const UNKNOWN_TERMINAL: Terminal = {
  type: 'dumb',
  columns: 80,
  rows: 24,
  widthPixels: 0,
  heightPixels: 0,
}
