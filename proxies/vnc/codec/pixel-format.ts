/** RFC 6143 section 7.4: the format of a pixel's bytes. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { uint16At } from '../../bytes/uint16.ts'

export const PIXEL_FORMAT_BYTES = 16

export interface PixelFormat {
  bitsPerPixel: 8 | 16 | 32
  depth: number
  isBigEndian: boolean
  /** If false, pixels are indices into the colour map. */
  isTrueColour: boolean
  redMax: number
  greenMax: number
  blueMax: number
  redShift: number
  greenShift: number
  blueShift: number
}

/** 32 bits little-endian, `0x00rrggbb`: the format that most viewers request. */
export const RGB888: PixelFormat = {
  bitsPerPixel: 32,
  depth: 24,
  isBigEndian: false,
  isTrueColour: true,
  redMax: 255,
  greenMax: 255,
  blueMax: 255,
  redShift: 16,
  greenShift: 8,
  blueShift: 0,
}

/**
 * Parses the 16 bytes at `offset`, whose presence the caller has checked. Throws MalformedError, also for
 * formats that peers interpret differently: a reader of the recording must find the same lengths as the
 * target.
 */
export function parsePixelFormat(bytes: Uint8Array, offset = 0): PixelFormat {
  const bitsPerPixel = bytes[offset]!
  if (bitsPerPixel !== 8 && bitsPerPixel !== 16 && bitsPerPixel !== 32) {
    throw new MalformedError(`vnc: 8, 16 or 32 bits a pixel were expected, found ${bitsPerPixel}`)
  }
  const format: PixelFormat = {
    bitsPerPixel,
    depth: bytes[offset + 1]!,
    isBigEndian: bytes[offset + 2] !== 0,
    isTrueColour: bytes[offset + 3] !== 0,
    redMax: uint16At(bytes, offset + 4),
    greenMax: uint16At(bytes, offset + 6),
    blueMax: uint16At(bytes, offset + 8),
    redShift: bytes[offset + 10]!,
    greenShift: bytes[offset + 11]!,
    blueShift: bytes[offset + 12]!,
  }
  if (bitsPerPixel < format.depth) {
    throw new MalformedError(
      `vnc: a depth of at most ${bitsPerPixel} bits was expected, found ${format.depth}`,
    )
  }
  if (!format.isTrueColour) {
    if (bitsPerPixel !== 8) {
      throw new MalformedError(`vnc: a colour map was expected with 8 bits a pixel, found ${bitsPerPixel}`)
    }
    return format
  }
  checkColours(format)
  return format
}

interface Part {
  name: string
  max: number
  shift: number
}

function partsOf(format: PixelFormat): Part[] {
  return [
    { name: 'red', max: format.redMax, shift: format.redShift },
    { name: 'green', max: format.greenMax, shift: format.greenShift },
    { name: 'blue', max: format.blueMax, shift: format.blueShift },
  ]
}

function checkColours(format: PixelFormat): void {
  let taken = 0
  for (const { name, max, shift } of partsOf(format)) {
    // A maximum is 2^n - 1, and has no bit in common with its successor.
    const width = 32 - Math.clz32(max)
    if (max === 0 || (max & (max + 1)) !== 0 || format.bitsPerPixel < shift + width) {
      throw new MalformedError(
        `vnc: ${name} of n bits, shifted inside the pixel's ${format.bitsPerPixel}, was expected, found a maximum of ${max}, shifted by ${shift}`,
      )
    }
    const mask = max << shift
    if ((taken & mask) !== 0) {
      throw new MalformedError(
        `vnc: ${name} in bits of its own was expected, found a maximum of ${max}, shifted by ${shift}`,
      )
    }
    taken |= mask
  }
  // A TPIXEL of these formats has three bytes by the specification, and four in TigerVNC.
  if (bytesPerTightPixel(format) === 3 && partsOf(format).some(({ shift }) => shift % 8 !== 0)) {
    throw new MalformedError(
      `vnc: colours of 8 bits in bytes of their own were expected, found shifts of ${partsOf(format).map(({ shift }) => shift)}`,
    )
  }
}

/** The least maximum of each colour: with fewer shades most text would have the colour of its background. */
const LEAST_MAX = 3

/** Returns true if text in this format is legible. */
export function isReadable(format: PixelFormat): boolean {
  return !format.isTrueColour || partsOf(format).every(({ max }) => LEAST_MAX <= max)
}

export function encodePixelFormat(format: PixelFormat): Buffer {
  const bytes = Buffer.alloc(PIXEL_FORMAT_BYTES)
  bytes[0] = format.bitsPerPixel
  bytes[1] = format.depth
  bytes[2] = format.isBigEndian ? 1 : 0
  bytes[3] = format.isTrueColour ? 1 : 0
  bytes.writeUInt16BE(format.redMax, 4)
  bytes.writeUInt16BE(format.greenMax, 6)
  bytes.writeUInt16BE(format.blueMax, 8)
  bytes[10] = format.redShift
  bytes[11] = format.greenShift
  bytes[12] = format.blueShift
  return bytes
}

export function samePixelFormat(a: PixelFormat, b: PixelFormat): boolean {
  return encodePixelFormat(a).equals(encodePixelFormat(b))
}

export function bytesPerPixel(format: PixelFormat): 1 | 2 | 4 {
  return (format.bitsPerPixel / 8) as 1 | 2 | 4
}

/**
 * Returns the bytes of a TPIXEL (community specification, Tight Encoding): three if each colour has 8 bits at
 * depth 24.
 */
export function bytesPerTightPixel(format: PixelFormat): 1 | 2 | 3 | 4 {
  const { redMax, greenMax, blueMax } = format
  const isPacked =
    format.isTrueColour &&
    format.bitsPerPixel === 32 &&
    format.depth === 24 &&
    redMax === 255 &&
    greenMax === 255 &&
    blueMax === 255
  return isPacked ? 3 : bytesPerPixel(format)
}

/**
 * Returns the bytes of a CPIXEL (RFC 6143 section 7.7.5): three if the colours leave one end of the four
 * free.
 */
export function bytesPerCompactPixel(format: PixelFormat): 1 | 2 | 3 | 4 {
  if (!format.isTrueColour || format.bitsPerPixel !== 32 || 24 < format.depth) return bytesPerPixel(format)
  const mask = partsOf(format).reduce((bits, { max, shift }) => bits | (max << shift), 0)
  return (mask & 0xff000000) === 0 || (mask & 0xff) === 0 ? 3 : 4
}
