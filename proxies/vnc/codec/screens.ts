/** Screens in a framebuffer (community specification, Screen Model and ExtendedDesktopSize). */
import { Buffer } from 'node:buffer'
import { uint16At } from '../../bytes/uint16.ts'
import { uint32At } from '../../bytes/uint32.ts'

export const SCREEN_BYTES = 16

export interface Screen {
  id: number
  x: number
  y: number
  width: number
  height: number
  flags: number
}

/** Parses the bytes from `offset` to the end, which are a whole number of screens. */
export function parseScreens(bytes: Uint8Array, offset: number): Screen[] {
  const screens: Screen[] = []
  for (let at = offset; at < bytes.length; at += SCREEN_BYTES) {
    screens.push({
      id: uint32At(bytes, at),
      x: uint16At(bytes, at + 4),
      y: uint16At(bytes, at + 6),
      width: uint16At(bytes, at + 8),
      height: uint16At(bytes, at + 10),
      flags: uint32At(bytes, at + 12),
    })
  }
  return screens
}

export function encodeScreens(screens: readonly Screen[]): Buffer {
  const bytes = Buffer.alloc(SCREEN_BYTES * screens.length)
  screens.forEach(({ id, x, y, width, height, flags }, index) => {
    const at = SCREEN_BYTES * index
    bytes.writeUInt32BE(id, at)
    bytes.writeUInt16BE(x, at + 4)
    bytes.writeUInt16BE(y, at + 6)
    bytes.writeUInt16BE(width, at + 8)
    bytes.writeUInt16BE(height, at + 10)
    bytes.writeUInt32BE(flags, at + 12)
  })
  return bytes
}
