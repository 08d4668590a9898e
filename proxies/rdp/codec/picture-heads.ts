/**
 * Headers of updates, checked so that a recording can show every update: otherwise a client may draw more
 * than the recording keeps, hidden from reviewers. Pixels are not inspected.
 */
import { ByteReader } from './reader.ts'
import { UPDATE, type Update } from './updates.ts'

/** Pixels of one bitmap. Its data has less than 64 KiB, so servers send far fewer. */
export const BITMAP_PIXEL_LIMIT = 2 ** 22
/** Pixels per side of a large pointer; other pointers have at most 96. */
export const POINTER_SIDE_LIMIT = 384
/** Entries of the pointer cache: clients offer about 20. */
export const POINTER_CACHE_LIMIT = 128

const BITMAP_DEPTHS = [8, 15, 16, 24, 32]
const POINTER_DEPTHS = [1, ...BITMAP_DEPTHS]
const COLOURS = 256
/** Flags of a bitmap (MS-RDPBCGR 2.2.9.1.1.3.1.2.2). */
const COMPRESSED = 0x0001
const WITHOUT_HEADER = 0x0400
/** Bytes of TS_CD_HEADER; the second of its four numbers is the length of the data after it. */
const COMPRESSION_HEADER = 8

/** Throws MalformedError for an update that a recording could not show. */
export function requireDrawable({ code, data }: Update): void {
  switch (code) {
    case UPDATE.bitmap:
      requireBitmaps(new ByteReader(data, 'bitmap update'))
      return
    case UPDATE.palette: {
      const reader = new ByteReader(data, 'palette update')
      reader.skip(4)
      reader.expect('number of colours', reader.uint32(), COLOURS)
      reader.skip(3 * COLOURS)
      return
    }
    case UPDATE.pointerPosition:
      new ByteReader(data, 'pointer update').skip(4)
      return
    case UPDATE.pointerCached:
      requireIndex(new ByteReader(data, 'pointer update'))
      return
    case UPDATE.pointerColour:
      requirePointer(new ByteReader(data, 'pointer update'), 24, false)
      return
    case UPDATE.pointerNew:
    case UPDATE.pointerLarge: {
      const reader = new ByteReader(data, 'pointer update')
      const depth = reader.expect('pointer’s depth', reader.uint16(), ...POINTER_DEPTHS)
      requirePointer(reader, depth, code === UPDATE.pointerLarge)
    }
  }
}

function requireBitmaps(reader: ByteReader): void {
  reader.skip(2)
  for (let count = reader.uint16(); count > 0; count--) {
    reader.skip(8)
    const [width, height] = [reader.uint16(), reader.uint16()]
    const depth = reader.expect('bitmap’s depth', reader.uint16(), ...BITMAP_DEPTHS)
    const [flags, length] = [reader.uint16(), reader.uint16()]
    if (BITMAP_PIXEL_LIMIT < width * height) {
      reader.fail(
        `a bitmap of at most ${BITMAP_PIXEL_LIMIT} pixels was expected, found one of ${width}x${height}`,
      )
    }
    const data = reader.bytes(length)
    if ((flags & COMPRESSED) === 0)
      requireLength(reader, length, rowLength(width * Math.ceil(depth / 8), 4) * height)
    else if ((flags & WITHOUT_HEADER) === 0) {
      const header = new ByteReader(data, 'compressed bitmap')
      header.skip(2)
      requireLength(reader, length - COMPRESSION_HEADER, header.uint16())
    }
  }
}

/**
 * Calls back with the destination of each bitmap in a drawable update. A client draws that area, whatever the
 * bitmap's own size.
 */
export function eachArea(
  { data }: Update,
  take: (left: number, top: number, width: number, height: number) => void,
): void {
  const reader = new ByteReader(data, 'bitmap update')
  reader.skip(2)
  for (let count = reader.uint16(); count > 0; count--) {
    const [left, top] = [reader.uint16(), reader.uint16()]
    // right and bottom are inclusive.
    const [width, height] = [reader.uint16() + 1 - left, reader.uint16() + 1 - top]
    reader.skip(2 + 2 + 2 + 2)
    reader.skip(reader.uint16())
    if (width > 0 && height > 0) take(left, top, width, height)
  }
}

/** Checks a pointer after its depth field, if it has one. Masks have one bit per pixel, or `depth` bits. */
function requirePointer(reader: ByteReader, depth: number, isLarge: boolean): void {
  requireIndex(reader)
  reader.skip(4)
  const [width, height] = [reader.uint16(), reader.uint16()]
  if (POINTER_SIDE_LIMIT < Math.max(width, height)) {
    reader.fail(
      `a pointer of at most ${POINTER_SIDE_LIMIT} pixels a side was expected, found one of ${width}x${height}`,
    )
  }
  const transparency = isLarge ? reader.uint32() : reader.uint16()
  const colours = isLarge ? reader.uint32() : reader.uint16()
  requireLength(reader, colours, rowLength(Math.ceil((width * depth) / 8), 2) * height)
  if (transparency > 0) requireLength(reader, transparency, rowLength(Math.ceil(width / 8), 2) * height)
  reader.skip(colours + transparency)
}

function requireIndex(reader: ByteReader): void {
  const index = reader.uint16()
  if (POINTER_CACHE_LIMIT <= index) {
    reader.fail(`a pointer’s number below ${POINTER_CACHE_LIMIT} was expected, found ${index}`)
  }
}

/** Rows are padded to whole words of `word` bytes. */
const rowLength = (bytes: number, word: number): number => Math.ceil(bytes / word) * word

function requireLength(reader: ByteReader, length: number, needed: number): void {
  if (length < needed) reader.fail(`${needed} bytes of pixels were expected, found ${length}`)
}
