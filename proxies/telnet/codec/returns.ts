/**
 * Converts line ends between Telnet's network virtual terminal (RFC 854, and RFC 1123 section 3.3.1) and
 * terminals or programs: there CR is an ordinary byte, on the network LF or NUL follows it.
 */
import { Buffer } from 'node:buffer'

const NUL = 0
const LF = 10
const CR = 13

/** One direction of one connection: the result can depend on the last byte before. */
export interface Translation {
  /** Returns the same bytes if no change is needed. */
  translate(bytes: Uint8Array): Uint8Array
}

/** Typed input: CR LF, CR NUL, CR and LF all stand for the key Return, which is CR on a terminal. */
export class TypedReturns implements Translation {
  #afterCr = false

  translate(bytes: Uint8Array): Uint8Array {
    if (!this.#afterCr && !bytes.includes(CR) && !bytes.includes(LF)) return bytes
    const translated = Buffer.allocUnsafe(bytes.length)
    let to = 0
    let afterCr = this.#afterCr
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (!afterCr || (byte !== LF && byte !== NUL)) translated[to++] = byte === LF ? CR : byte
      afterCr = byte === CR
    }
    this.#afterCr = afterCr
    return translated.subarray(0, to)
  }
}

/** Output of a target: CR NUL is a CR alone. */
export class ShownReturns implements Translation {
  #afterCr = false

  translate(bytes: Uint8Array): Uint8Array {
    if (bytes.length === 0) return bytes
    let afterCr = this.#afterCr
    this.#afterCr = bytes[bytes.length - 1] === CR
    if (!bytes.includes(NUL)) return bytes
    const translated = Buffer.allocUnsafe(bytes.length)
    let to = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (!afterCr || byte !== NUL) translated[to++] = byte
      afterCr = byte === CR
    }
    return translated.subarray(0, to)
  }
}

/** Output to a user's client: a CR that ends no line (CR LF) is sent as CR NUL. */
export class OutputReturns implements Translation {
  #afterCr = false

  translate(bytes: Uint8Array): Uint8Array {
    if (!this.#afterCr && !bytes.includes(CR)) return bytes
    const translated = Buffer.allocUnsafe(bytes.length * 2)
    let to = 0
    let afterCr = this.#afterCr
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (afterCr && byte !== LF) translated[to++] = NUL
      translated[to++] = byte
      afterCr = byte === CR
    }
    this.#afterCr = afterCr
    return translated.subarray(0, to)
  }
}

/** Input to a target: Return is CR NUL. Some devices read CR LF as two Returns, none CR NUL. */
export class KeyReturns implements Translation {
  translate(bytes: Uint8Array): Uint8Array {
    if (!bytes.includes(CR)) return bytes
    const translated = Buffer.allocUnsafe(bytes.length * 2)
    let to = 0
    for (const byte of bytes) {
      translated[to++] = byte
      if (byte === CR) translated[to++] = NUL
    }
    return translated.subarray(0, to)
  }
}
