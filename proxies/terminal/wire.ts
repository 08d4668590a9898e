/** What differs between the protocols by which a target shows a terminal: their bytes. */

export interface TerminalSize {
  columns: number
  rows: number
  /** 0: unknown. */
  widthPixels: number
  heightPixels: number
}

export interface Terminal extends TerminalSize {
  /** As terminal databases have it. */
  type: string
}

/** The connection and the session, as the protocol's side of them needs them. */
export interface WireSurroundings {
  write(bytes: Uint8Array): void
  /** The last byte is urgent, where that can be done. */
  writeUrgent(bytes: Uint8Array): void
  /** Output of the target. Valid during the call only. */
  output(bytes: Uint8Array): void
}

/** The client's end of a protocol, without its socket. */
export interface Wire {
  start(terminal: Terminal): void
  /**
   * `isUrgent`: the first byte was announced as urgent. The bytes are valid during the call only. Throws
   * MalformedError: the connection cannot go on.
   */
  receive(bytes: Uint8Array, isUrgent: boolean): void
  /** What is typed; Return is CR. */
  send(bytes: Uint8Array): void
  resize(size: TerminalSize): void
  /** A line's break; false: the protocol has none. */
  break(): boolean
  /** Interrupts what runs. */
  interrupt(): void
  /** What the target has said instead of letting the session begin. */
  readonly refusal?: string | undefined
}
