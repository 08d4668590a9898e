/**
 * Parses the messages of a viewer after ClientInit (RFC 6143 section 7.5, and the community specification).
 */
import { MalformedError } from '../../bytes/malformed.ts'
import { uint16At } from '../../bytes/uint16.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { CUT_TEXT_LIMIT, ENCODINGS_LIMIT, FENCE_PAYLOAD_LIMIT } from './limits.ts'
import { PendingBytes } from './pending-bytes.ts'
import { PIXEL_FORMAT_BYTES, type PixelFormat, parsePixelFormat } from './pixel-format.ts'
import { parseScreens, SCREEN_BYTES, type Screen } from './screens.ts'

export const CLIENT_MESSAGE = {
  SET_PIXEL_FORMAT: 0,
  SET_ENCODINGS: 2,
  UPDATE_REQUEST: 3,
  KEY: 4,
  POINTER: 5,
  CUT_TEXT: 6,
  CONTINUOUS_UPDATES: 150,
  FENCE: 248,
  SET_DESKTOP_SIZE: 251,
  QEMU: 255,
} as const

/** QEMU's messages have sub-types of their own. */
export const QEMU_KEY = 0

export interface Area {
  x: number
  y: number
  width: number
  height: number
}

export type ClientMessage =
  | { kind: 'set-pixel-format'; format: PixelFormat }
  | { kind: 'set-encodings'; encodings: number[] }
  | ({ kind: 'update-request'; isIncremental: boolean } & Area)
  /** `keycode`: the XT scan code of QEMU's message. A viewer without a keysym sends 0 for it. */
  | { kind: 'key'; isDown: boolean; keysym: number; keycode: number | undefined }
  /** `buttons`: bit 0 is the left one, 1 middle, 2 right, 3 to 6 the wheel, 7 back, 8 forward. */
  | { kind: 'pointer'; x: number; y: number; buttons: number }
  /** Latin-1. */
  | { kind: 'cut-text'; text: Uint8Array }
  /** `body`: the bytes after the flags. */
  | { kind: 'extended-cut-text'; flags: number; body: Uint8Array }
  | ({ kind: 'continuous-updates'; isEnabled: boolean } & Area)
  | { kind: 'fence'; flags: number; payload: Uint8Array }
  | { kind: 'set-desktop-size'; width: number; height: number; screens: Screen[] }

export class ClientMessageReader {
  /** Bit 7 of a PointerEvent announces another byte: viewer and server have both confirmed the extension. */
  hasExtendedButtons = false
  /** A negative length marks an extended cut text: viewer and server have both confirmed the extension. */
  hasExtendedClipboard = false
  readonly #take: (message: ClientMessage, bytes: Uint8Array) => void
  readonly #pending = new PendingBytes()

  /** `take` receives each message with its exact bytes, which are valid during the call only. */
  constructor(take: (message: ClientMessage, bytes: Uint8Array) => void) {
    this.#take = take
  }

  /** Throws MalformedError and errors of `take`; the stream cannot be read after that. */
  feed(chunk: Uint8Array): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#pending.length > 0) {
        at = this.#complete(chunk, at)
        continue
      }
      const length = this.#lengthOf(chunk, at, chunk.length - at)
      if (chunk.length - at < length) {
        this.#pending.append(chunk, at, chunk.length)
        return
      }
      const bytes = chunk.subarray(at, at + length)
      at += length
      this.#take(this.#parse(bytes), bytes)
    }
  }

  /** Continues a pending message; returns where its bytes end. */
  #complete(chunk: Uint8Array, from: number): number {
    const pending = this.#pending
    let at = from
    while (true) {
      const length = this.#lengthOf(pending.bytes, 0, pending.length)
      if (length <= pending.length) break
      if (at === chunk.length) return at
      const to = Math.min(chunk.length, at + length - pending.length)
      pending.append(chunk, at, to)
      at = to
    }
    const bytes = pending.bytes
    this.#take(this.#parse(bytes), bytes)
    pending.clear()
    return at
  }

  /**
   * Returns the length of the message at `at`, or the number of bytes that decides it, which is then more
   * than `available`. `available` is at least 1.
   */
  #lengthOf(bytes: Uint8Array, at: number, available: number): number {
    switch (bytes[at]) {
      case CLIENT_MESSAGE.SET_PIXEL_FORMAT:
        return 4 + PIXEL_FORMAT_BYTES
      case CLIENT_MESSAGE.SET_ENCODINGS: {
        if (available < 4) return 4
        const count = uint16At(bytes, at + 2)
        if (ENCODINGS_LIMIT < count) {
          throw new MalformedError(`vnc: at most ${ENCODINGS_LIMIT} encodings were expected, found ${count}`)
        }
        return 4 + 4 * count
      }
      case CLIENT_MESSAGE.UPDATE_REQUEST:
      case CLIENT_MESSAGE.CONTINUOUS_UPDATES:
        return 10
      case CLIENT_MESSAGE.KEY:
        return 8
      case CLIENT_MESSAGE.POINTER:
        return this.hasExtendedButtons && available > 1 && bytes[at + 1]! & 0x80 ? 7 : 6
      case CLIENT_MESSAGE.CUT_TEXT:
        return available < 8 ? 8 : 8 + this.#cutTextLength(bytes, at)
      case CLIENT_MESSAGE.FENCE:
        return available < 9 ? 9 : 9 + fenceLength(bytes, at)
      case CLIENT_MESSAGE.SET_DESKTOP_SIZE:
        return available < 8 ? 8 : 8 + SCREEN_BYTES * bytes[at + 6]!
      case CLIENT_MESSAGE.QEMU:
        if (available < 2) return 2
        if (bytes[at + 1] === QEMU_KEY) return 12
        throw new MalformedError(`vnc: QEMU's key event was expected, found its message ${bytes[at + 1]}`)
      default:
        throw new MalformedError(`vnc: a message of a viewer was expected, found type ${bytes[at]}`)
    }
  }

  #cutTextLength(bytes: Uint8Array, at: number): number {
    const length = cutTextLength(bytes, at, this.hasExtendedClipboard)
    return length.isExtended ? 4 + length.body : length.body
  }

  #parse(bytes: Uint8Array): ClientMessage {
    switch (bytes[0]) {
      case CLIENT_MESSAGE.SET_PIXEL_FORMAT:
        return { kind: 'set-pixel-format', format: parsePixelFormat(bytes, 4) }
      case CLIENT_MESSAGE.SET_ENCODINGS: {
        const encodings: number[] = []
        for (let at = 4; at < bytes.length; at += 4) encodings.push(uint32At(bytes, at) | 0)
        return { kind: 'set-encodings', encodings }
      }
      case CLIENT_MESSAGE.UPDATE_REQUEST:
        return { kind: 'update-request', isIncremental: bytes[1] !== 0, ...areaAt(bytes, 2) }
      case CLIENT_MESSAGE.CONTINUOUS_UPDATES:
        return { kind: 'continuous-updates', isEnabled: bytes[1] !== 0, ...areaAt(bytes, 2) }
      case CLIENT_MESSAGE.KEY:
        return { kind: 'key', isDown: bytes[1] !== 0, keysym: uint32At(bytes, 4), keycode: undefined }
      case CLIENT_MESSAGE.QEMU:
        return {
          kind: 'key',
          isDown: uint16At(bytes, 2) !== 0,
          keysym: uint32At(bytes, 4),
          keycode: uint32At(bytes, 8),
        }
      case CLIENT_MESSAGE.POINTER: {
        const buttons = bytes.length === 7 ? (bytes[1]! & 0x7f) | (bytes[6]! << 7) : bytes[1]!
        return { kind: 'pointer', x: uint16At(bytes, 2), y: uint16At(bytes, 4), buttons }
      }
      case CLIENT_MESSAGE.CUT_TEXT:
        return cutTextLength(bytes, 0, this.hasExtendedClipboard).isExtended
          ? { kind: 'extended-cut-text', flags: uint32At(bytes, 8), body: bytes.subarray(12) }
          : { kind: 'cut-text', text: bytes.subarray(8) }
      case CLIENT_MESSAGE.FENCE:
        return { kind: 'fence', flags: uint32At(bytes, 4), payload: bytes.subarray(9) }
      default:
        return {
          kind: 'set-desktop-size',
          width: uint16At(bytes, 2),
          height: uint16At(bytes, 4),
          screens: parseScreens(bytes, 8),
        }
    }
  }
}

function areaAt(bytes: Uint8Array, at: number): Area {
  return {
    x: uint16At(bytes, at),
    y: uint16At(bytes, at + 2),
    width: uint16At(bytes, at + 4),
    height: uint16At(bytes, at + 6),
  }
}

/**
 * Returns how many bytes follow the first 8 of a ClientCutText or ServerCutText, without the flags of an
 * extended one. Throws MalformedError above the limit.
 */
export function cutTextLength(
  bytes: Uint8Array,
  at: number,
  mayBeExtended: boolean,
): { isExtended: boolean; body: number } {
  const signed = uint32At(bytes, at + 4) | 0
  const isExtended = mayBeExtended && signed < 0
  const length = isExtended ? -signed : signed >>> 0
  if (CUT_TEXT_LIMIT < length) {
    throw new MalformedError(
      `vnc: a cut text of at most ${CUT_TEXT_LIMIT} bytes was expected, found ${length}`,
    )
  }
  if (!isExtended) return { isExtended, body: length }
  if (length < 4) {
    throw new MalformedError(`vnc: an extended cut text of at least 4 bytes was expected, found ${length}`)
  }
  return { isExtended, body: length - 4 }
}

/**
 * Returns the payload's length of a ClientFence or ServerFence from its first 9 bytes. Throws MalformedError.
 */
export function fenceLength(bytes: Uint8Array, at: number): number {
  const length = bytes[at + 8]!
  if (FENCE_PAYLOAD_LIMIT < length) {
    throw new MalformedError(
      `vnc: a fence with at most ${FENCE_PAYLOAD_LIMIT} bytes was expected, found ${length}`,
    )
  }
  return length
}
