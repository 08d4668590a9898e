/** RFC 6143 sections 7.7 and 7.8, and the community specification: encodings as signed numbers of 32 bits. */
export const ENCODING = {
  RAW: 0,
  COPY_RECT: 1,
  RRE: 2,
  HEXTILE: 5,
  ZLIB: 6,
  TIGHT: 7,
  ZRLE: 16,
  DESKTOP_SIZE: -223,
  LAST_RECT: -224,
  CURSOR: -239,
  X_CURSOR: -240,
  QEMU_KEY: -258,
  QEMU_LED: -261,
  DESKTOP_NAME: -307,
  EXTENDED_DESKTOP_SIZE: -308,
  FENCE: -312,
  CONTINUOUS_UPDATES: -313,
  CURSOR_WITH_ALPHA: -314,
  EXTENDED_MOUSE_BUTTONS: -316,
  EXTENDED_CLIPBOARD: 0xc0a1e5ce | 0,
} as const

const PIXEL_ENCODINGS: ReadonlySet<number> = new Set([
  ENCODING.RAW,
  ENCODING.COPY_RECT,
  ENCODING.RRE,
  ENCODING.HEXTILE,
  ENCODING.ZLIB,
  ENCODING.TIGHT,
  ENCODING.ZRLE,
])

const KNOWN: ReadonlySet<number> = new Set(Object.values(ENCODING))

/**
 * Ranges of quality and compression levels, which are never encodings of rectangles. For JPEG quality (-512
 * to -412 is 0 to 100) the lowest are left out: text in such pictures is illegible.
 */
const LEVELS = [
  [-32, -23],
  [-256, -247],
  [-497, -412],
  [-768, -763],
] as const

/** Returns true if its rectangles change pixels. */
export function isPixelEncoding(encoding: number): boolean {
  return PIXEL_ENCODINGS.has(encoding)
}

/**
 * Returns true if a viewer may request it: recordings can be drawn from it, or it does not affect rectangles.
 */
export function isPassed(encoding: number): boolean {
  return KNOWN.has(encoding) || LEVELS.some(([low, high]) => low <= encoding && encoding <= high)
}

/** Returns the name for errors and descriptions: `tight`, `extended-desktop-size`, or the number. */
export function encodingName(encoding: number): string {
  const name = Object.entries(ENCODING).find(([, number]) => number === encoding)?.[0]
  return name ? name.toLowerCase().replaceAll('_', '-') : String(encoding)
}
