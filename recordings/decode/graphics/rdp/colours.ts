/** Pixel values of RDP as colours: 0xAABBGGRR, opaque. */
import { rgb } from '../framebuffer.ts'
import { MalformedGraphics } from '../malformed.ts'
import type { UpdateReader } from './reader.ts'

const OPAQUE = 0xff << 24
const PALETTE_LENGTH = 256

/** Widens five or six bits to eight, so that the highest value is white. */
const widened = (value: number, bits: number): number => (value << (8 - bits)) | (value >> (2 * bits - 8))

function table15(): Uint32Array {
  const colour = (value: number): number =>
    rgb(widened(value >> 10, 5), widened((value >> 5) & 0x1f, 5), widened(value & 0x1f, 5))
  return Uint32Array.from({ length: 0x8000 }, (_, value) => colour(value))
}

function table16(): Uint32Array {
  const colour = (value: number): number =>
    rgb(widened(value >> 11, 5), widened((value >> 5) & 0x3f, 6), widened(value & 0x1f, 5))
  return Uint32Array.from({ length: 0x1_0000 }, (_, value) => colour(value))
}

const tables = new Map<number, Uint32Array>()

/** Returns the colour of each value of 15 or 16 bits. */
function tableOf(depth: 15 | 16): Uint32Array {
  const table = tables.get(depth) ?? (depth === 15 ? table15() : table16())
  tables.set(depth, table)
  return table
}

/** Converts 0xRRGGBB, as in RDP's pixels of 24 and 32 bits. */
export const colourOf24 = (value: number): number =>
  (OPAQUE | ((value & 0xff) << 16) | (value & 0xff00) | ((value >> 16) & 0xff)) >>> 0

/** Replaces values by colours, in place. */
export function toColours(pixels: Uint32Array, depth: number, palette: Uint32Array): void {
  if (depth === 24 || depth === 32) {
    for (let at = 0; at < pixels.length; at++) pixels[at] = colourOf24(pixels[at]!)
    return
  }
  const table = depth === 8 ? palette : tableOf(depth === 15 ? 15 : 16)
  const mask = table.length - 1
  for (let at = 0; at < pixels.length; at++) pixels[at] = table[pixels[at]! & mask]!
}

/** Returns shades of grey, the palette until one is received. */
export const greyPalette = (): Uint32Array =>
  Uint32Array.from({ length: PALETTE_LENGTH }, (_, value) => rgb(value, value, value))

/** Palette update (MS-RDPBCGR 2.2.9.1.1.3.1.1.1): `u16 type, u16, u32 count`, then three bytes for each. */
export function parsePalette(reader: UpdateReader): Uint32Array {
  reader.bytes(4)
  const count = reader.u32()
  if (count !== PALETTE_LENGTH) {
    throw new MalformedGraphics(`palette: expected ${PALETTE_LENGTH} colours, got ${count}`)
  }
  return Uint32Array.from({ length: PALETTE_LENGTH }, () => rgb(reader.u8(), reader.u8(), reader.u8()))
}
