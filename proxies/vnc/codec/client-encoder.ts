/** Encodes messages of a viewer (RFC 6143 section 7.5) that the bastion itself sends to a target. */
import { Buffer } from 'node:buffer'
import { type Area, CLIENT_MESSAGE, QEMU_KEY } from './client-messages.ts'
import { encodePixelFormat, type PixelFormat } from './pixel-format.ts'
import { encodeScreens, type Screen } from './screens.ts'

export function encodeSetPixelFormat(format: PixelFormat): Buffer {
  return Buffer.concat([Buffer.of(CLIENT_MESSAGE.SET_PIXEL_FORMAT, 0, 0, 0), encodePixelFormat(format)])
}

/** `encodings`: in order of preference. */
export function encodeSetEncodings(encodings: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 + 4 * encodings.length)
  bytes[0] = CLIENT_MESSAGE.SET_ENCODINGS
  bytes.writeUInt16BE(encodings.length, 2)
  encodings.forEach((encoding, index) => {
    bytes.writeInt32BE(encoding, 4 + 4 * index)
  })
  return bytes
}

export function encodeUpdateRequest(isIncremental: boolean, area: Area): Buffer {
  return withArea(CLIENT_MESSAGE.UPDATE_REQUEST, isIncremental, area)
}

export function encodeContinuousUpdates(isEnabled: boolean, area: Area): Buffer {
  return withArea(CLIENT_MESSAGE.CONTINUOUS_UPDATES, isEnabled, area)
}

function withArea(type: number, flag: boolean, { x, y, width, height }: Area): Buffer {
  const bytes = Buffer.alloc(10)
  bytes[0] = type
  bytes[1] = flag ? 1 : 0
  bytes.writeUInt16BE(x, 2)
  bytes.writeUInt16BE(y, 4)
  bytes.writeUInt16BE(width, 6)
  bytes.writeUInt16BE(height, 8)
  return bytes
}

export function encodeKey(isDown: boolean, keysym: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes[0] = CLIENT_MESSAGE.KEY
  bytes[1] = isDown ? 1 : 0
  bytes.writeUInt32BE(keysym, 4)
  return bytes
}

/** QEMU's key event, with the key's place on the keyboard (XT scan code). */
export function encodeQemuKey(isDown: boolean, keysym: number, keycode: number): Buffer {
  const bytes = Buffer.alloc(12)
  bytes[0] = CLIENT_MESSAGE.QEMU
  bytes[1] = QEMU_KEY
  bytes.writeUInt16BE(isDown ? 1 : 0, 2)
  bytes.writeUInt32BE(keysym, 4)
  bytes.writeUInt32BE(keycode, 8)
  return bytes
}

/** Encodes a pointer event with the byte of further buttons, for servers that have confirmed this extension. */
export function encodeExtendedPointer(x: number, y: number, buttons: number): Buffer {
  return Buffer.concat([encodePointer(x, y, (buttons & 0x7f) | 0x80), Buffer.of((buttons >> 7) & 0xff)])
}

/** `buttons`: the eight that any server knows. */
export function encodePointer(x: number, y: number, buttons: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes[0] = CLIENT_MESSAGE.POINTER
  bytes[1] = buttons & 0xff
  bytes.writeUInt16BE(x, 2)
  bytes.writeUInt16BE(y, 4)
  return bytes
}

/** `text`: Latin-1. */
export function encodeClientCutText(text: Uint8Array): Buffer {
  const head = Buffer.of(CLIENT_MESSAGE.CUT_TEXT, 0, 0, 0, 0, 0, 0, 0)
  head.writeUInt32BE(text.length, 4)
  return Buffer.concat([head, text])
}

/** Encodes an extended cut text, whose length is negative. */
export function encodeExtendedClientCutText(flags: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(12)
  head[0] = CLIENT_MESSAGE.CUT_TEXT
  head.writeInt32BE(-4 - body.length, 4)
  head.writeUInt32BE(flags >>> 0, 8)
  return Buffer.concat([head, body])
}

export function encodeClientFence(flags: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9)
  head[0] = CLIENT_MESSAGE.FENCE
  head.writeUInt32BE(flags >>> 0, 4)
  head[8] = payload.length
  return Buffer.concat([head, payload])
}

export function encodeSetDesktopSize(width: number, height: number, screens: readonly Screen[]): Buffer {
  const head = Buffer.of(CLIENT_MESSAGE.SET_DESKTOP_SIZE, 0, 0, 0, 0, 0, screens.length, 0)
  head.writeUInt16BE(width, 2)
  head.writeUInt16BE(height, 4)
  return Buffer.concat([head, encodeScreens(screens)])
}
