/** The client's end of a protocol by which a target shows a terminal. */

export interface TerminalSize {
  columns: number
  rows: number
  /** 0 if unknown. */
  widthPixels: number
  heightPixels: number
}

export interface Terminal extends TerminalSize {
  /** The name as in terminal databases. */
  type: string
}

/** The connection and the session, for the protocol's side. */
export interface WireSurroundings {
  write(bytes: Uint8Array): void
  /** Writes with the last byte urgent, if possible. */
  writeUrgent(bytes: Uint8Array): void
  /** Receives output of the target. Valid during the call only. */
  output(bytes: Uint8Array): void
}

/** The client's end of a protocol, without its socket. */
export interface Wire {
  start(terminal: Terminal): void
  /**
   * `isUrgent`: the first byte was announced as urgent. The bytes are valid during the call only. Throws
   * MalformedError: the connection cannot continue.
   */
  receive(bytes: Uint8Array, isUrgent: boolean): void
  /** Sends typed input; Return is CR. */
  send(bytes: Uint8Array): void
  resize(size: TerminalSize): void
  /** Sends a break. Returns false if the protocol has none. */
  break(): boolean
  /** Interrupts the running program. */
  interrupt(): void
  /** The target's message if it has refused the session. */
  readonly refusal?: string | undefined
}
