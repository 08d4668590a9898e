/** Decodes a stream of UTF-8 that may be cut anywhere, and detects a cut within a character. */
export class Utf8Stream {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /** Missing bytes of the current character. */
  #wanted = 0

  /** Decodes a piece; invalid bytes become U+FFFD. */
  decode(bytes: Uint8Array): string {
    // Only the last character can be incomplete, and it begins in the last three bytes or before the piece.
    for (let at = Math.max(0, bytes.length - 3); at < bytes.length; at++) this.#follow(bytes[at]!)
    return this.#decoder.decode(bytes, { stream: true })
  }

  get isPartial(): boolean {
    return this.#wanted > 0
  }

  #follow(byte: number): void {
    if (byte < 0x80 || byte >= 0xf8) this.#wanted = 0
    else if (byte >= 0xc0) this.#wanted = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3
    else if (this.#wanted > 0) this.#wanted--
  }
}
