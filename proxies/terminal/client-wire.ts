/** What differs between the protocols by which a person's client shows a terminal: their bytes, at the server's end. */
import type { Terminal, TerminalSize } from './wire.ts'

/** The connection and the person at it, as the protocol's side of them needs them. */
export interface ClientSurroundings {
  write(bytes: Uint8Array): void
  /** The last byte is urgent, where that can be done. */
  writeUrgent(bytes: Uint8Array): void
  /** What is typed; Return is CR. Valid during the call only. */
  typed(bytes: Uint8Array): void
  resized(size: TerminalSize): void
  /** A line's break. */
  break(): void
}

/** The server's end of a protocol, without its socket. */
export interface ClientWire {
  /** The connection is there. */
  start(): void
  /** The bytes are valid during the call only. Throws MalformedError: the connection cannot go on. */
  receive(bytes: Uint8Array): void
  /** Output, as a terminal takes it. The bytes are the wire's from now on. */
  show(bytes: Uint8Array): void
  /** The person has signed in: what the protocol has to say at the begin of a session. */
  signedIn(): void
  /** The connection is gone. */
  stop(): void
  /** What the client has said of its terminal so far. */
  readonly terminal: Terminal
  /** Whom the client says that it wants to be, once it has said so; undefined: it does not say. Never rejects. */
  readonly user: Promise<string | undefined>
}

/** Makes it for one connection. */
export type ClientProtocol = (around: ClientSurroundings) => ClientWire

/** Where a client does not tell its terminal: one that knows no escape sequences, of the size that they all had. */
export const UNKNOWN_TERMINAL: Terminal = {
  type: 'dumb',
  columns: 80,
  rows: 24,
  widthPixels: 0,
  heightPixels: 0,
}
