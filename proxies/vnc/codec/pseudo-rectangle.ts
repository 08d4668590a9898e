/**
 * Rectangles that change no pixels (RFC 6143 section 7.8, and the community specification): their lengths and
 * contents.
 */
import { MalformedError } from '../../bytes/malformed.ts'
import { displayText } from '../../bytes/text.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { ENCODING, encodingName } from './encodings.ts'
import { CURSOR_SIDE_LIMIT, NAME_LIMIT } from './limits.ts'
import { bytesPerPixel, type PixelFormat } from './pixel-format.ts'
import type { RectangleBody } from './rectangle-body.ts'
import { SCREEN_BYTES } from './screens.ts'

/** Bytes of a rectangle before its data. */
export const RECTANGLE_HEAD = 12

/** Returns the reader of the data's length. Throws MalformedError for any other encoding. */
export function pseudoBody(
  encoding: number,
  width: number,
  height: number,
  format: PixelFormat,
): RectangleBody {
  switch (encoding) {
    case ENCODING.CURSOR:
      checkCursor(width, height)
      return new CountedBody(width * height * bytesPerPixel(format) + maskBytes(width, height))
    case ENCODING.X_CURSOR:
      checkCursor(width, height)
      return new CountedBody(width === 0 || height === 0 ? 0 : 6 + 2 * maskBytes(width, height))
    case ENCODING.CURSOR_WITH_ALPHA:
      checkCursor(width, height)
      return new CountedBody(0, (bytes, at) => alphaCursorBytes(uint32At(bytes, at) | 0, width, height))
    case ENCODING.EXTENDED_DESKTOP_SIZE:
      return new CountedBody(0, (bytes, at) => SCREEN_BYTES * bytes[at]!)
    case ENCODING.DESKTOP_NAME:
      return new CountedBody(0, (bytes, at) => checkedNameLength(uint32At(bytes, at)))
    case ENCODING.QEMU_LED:
      return new CountedBody(1)
    case ENCODING.DESKTOP_SIZE:
    case ENCODING.LAST_RECT:
    case ENCODING.QEMU_KEY:
    case ENCODING.EXTENDED_MOUSE_BUTTONS:
      return new CountedBody(0)
    default:
      throw new MalformedError(`vnc: a rectangle was expected, found encoding ${encodingName(encoding)}`)
  }
}

/** A fixed number of bytes, or four that hold the number of bytes after them. */
class CountedBody implements RectangleBody {
  skip: number
  need: number
  readonly #count: ((bytes: Uint8Array, at: number) => number) | undefined

  constructor(length: number, count?: (bytes: Uint8Array, at: number) => number) {
    this.skip = length
    this.need = count ? 4 : 0
    this.#count = count
  }

  step(bytes: Uint8Array, at: number): void {
    this.skip = this.#count!(bytes, at)
    this.need = 0
  }
}

function maskBytes(width: number, height: number): number {
  return Math.ceil(width / 8) * height
}

function checkCursor(width: number, height: number): void {
  if (Math.max(width, height) <= CURSOR_SIDE_LIMIT) return
  throw new MalformedError(
    `vnc: a cursor of at most ${CURSOR_SIDE_LIMIT} pixels a side was expected, found ${width} × ${height}`,
  )
}

/** The specification allows any encoding; the servers with such cursors send them raw. */
function alphaCursorBytes(encoding: number, width: number, height: number): number {
  if (encoding === ENCODING.RAW) return 4 * width * height
  throw new MalformedError(`vnc: a raw cursor with alpha was expected, found ${encodingName(encoding)}`)
}

function checkedNameLength(length: number): number {
  if (length <= NAME_LIMIT) return length
  throw new MalformedError(
    `vnc: a desktop's name of at most ${NAME_LIMIT} bytes was expected, found ${length}`,
  )
}

/**
 * Returns true if an ExtendedDesktopSize changes the size: it may also report that a viewer's request was
 * refused.
 */
export function changesSize({ x: reason, y: status }: { x: number; y: number }): boolean {
  return reason !== 1 || status === 0
}

/** Returns the name in a complete DesktopName rectangle; it may contain any characters. */
export function parseDesktopName(rectangle: Uint8Array): string {
  return displayText(rectangle.subarray(RECTANGLE_HEAD + 4))
}
