/** Encodes messages of a server (RFC 6143 section 7.6) that the bastion itself sends to a viewer. */
import { Buffer } from 'node:buffer'
import { encodeExtendedClientCutText } from './client-encoder.ts'
import type { Area } from './client-messages.ts'
import { ENCODING } from './encodings.ts'
import { NAME_LIMIT } from './limits.ts'
import { encodeScreens, type Screen } from './screens.ts'

export const SERVER_MESSAGE = {
  UPDATE: 0,
  COLOUR_MAP: 1,
  BELL: 2,
  CUT_TEXT: 3,
  END_OF_CONTINUOUS_UPDATES: 150,
  FENCE: 248,
} as const

/** Encodes the beginning of a FramebufferUpdate of so many rectangles. */
export function encodeUpdateHeader(rectangles: number): Buffer {
  const bytes = Buffer.of(SERVER_MESSAGE.UPDATE, 0, 0, 0)
  bytes.writeUInt16BE(rectangles, 2)
  return bytes
}

/** Encodes a rectangle's 12 bytes before its data. */
export function encodeRectangleHeader({ x, y, width, height }: Area, encoding: number): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt16BE(x, 0)
  bytes.writeUInt16BE(y, 2)
  bytes.writeUInt16BE(width, 4)
  bytes.writeUInt16BE(height, 6)
  bytes.writeInt32BE(encoding, 8)
  return bytes
}

/** Encodes a rectangle. */
export function encodeDesktopSize(width: number, height: number): Buffer {
  return encodeRectangleHeader({ x: 0, y: 0, width, height }, ENCODING.DESKTOP_SIZE)
}

/**
 * Encodes a rectangle. `reason`: 0 for the server, 1 for this viewer, 2 for another one; `status`: 0 for
 * success.
 */
export function encodeExtendedDesktopSize(
  reason: number,
  status: number,
  width: number,
  height: number,
  screens: readonly Screen[],
): Buffer {
  return Buffer.concat([
    encodeRectangleHeader({ x: reason, y: status, width, height }, ENCODING.EXTENDED_DESKTOP_SIZE),
    Buffer.of(screens.length, 0, 0, 0),
    encodeScreens(screens),
  ])
}

/** Encodes a rectangle, and cuts a name that is too long. */
export function encodeDesktopName(name: string): Buffer {
  const text = Buffer.from(name, 'utf8').subarray(0, NAME_LIMIT)
  const head = encodeRectangleHeader({ x: 0, y: 0, width: 0, height: 0 }, ENCODING.DESKTOP_NAME)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  return Buffer.concat([head, length, text])
}

export function encodeBell(): Buffer {
  return Buffer.of(SERVER_MESSAGE.BELL)
}

/** Each part of a colour has 16 bits. */
export function encodeColourMap(
  first: number,
  colours: readonly { red: number; green: number; blue: number }[],
): Buffer {
  const bytes = Buffer.alloc(6 + 6 * colours.length)
  bytes[0] = SERVER_MESSAGE.COLOUR_MAP
  bytes.writeUInt16BE(first, 2)
  bytes.writeUInt16BE(colours.length, 4)
  colours.forEach(({ red, green, blue }, index) => {
    bytes.writeUInt16BE(red, 6 + 6 * index)
    bytes.writeUInt16BE(green, 8 + 6 * index)
    bytes.writeUInt16BE(blue, 10 + 6 * index)
  })
  return bytes
}

/** Encodes the viewer's message with the server's type. */
export function encodeExtendedServerCutText(flags: number, body: Uint8Array): Buffer {
  const message = encodeExtendedClientCutText(flags, body)
  message[0] = SERVER_MESSAGE.CUT_TEXT
  return message
}
