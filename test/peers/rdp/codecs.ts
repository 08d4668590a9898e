/** The bitmap codecs of FreeRDP's own library, which its clients and servers use. */
import { Buffer } from 'node:buffer'
import koffi from 'koffi'
import { libraryFile } from '../program.ts'

export const CODEC_PEERS = ['libfreerdp'] as const

/** Four bytes per pixel, red, green, blue and one more, the highest row first. */
export interface Pixels {
  width: number
  height: number
  rgbx: Buffer
}

/** FREERDP_PIXEL_FORMAT: bits, order, and the bits of alpha, red, green and blue. */
const FORMAT = {
  RGBX32: 0x2003_0888,
  RGBA32: 0x2003_8888,
  RGB16: 0x1001_0565,
  RGB15: 0x0f01_0555,
  BGR24: 0x1802_0888,
} as const
const VALUES = { 15: FORMAT.RGB15, 16: FORMAT.RGB16, 24: FORMAT.BGR24 } as const

export type Depth = keyof typeof VALUES
/** Bits of planar's format header. */
export const PLANAR = { encoded: 0x10, withoutAlpha: 0x20 } as const

const TARGET =
  'void *, uint32_t format, uint32_t step, uint32_t x, uint32_t y, uint32_t width, uint32_t height'

function load() {
  const library = koffi.load(libraryFile('libfreerdp'))
  return {
    newInterleaved: library.func('void *bitmap_interleaved_context_new(int)'),
    compress: library.func(
      'int interleaved_compress(void *, void *, void *size, uint32_t width, uint32_t height, void *, uint32_t format, uint32_t step, uint32_t x, uint32_t y, void *palette, uint32_t depth)',
    ),
    decompress: library.func(
      `int interleaved_decompress(void *, void *, uint32_t size, uint32_t, uint32_t, uint32_t depth, ${TARGET}, void *palette)`,
    ),
    newPlanar: library.func(
      'void *freerdp_bitmap_planar_context_new(uint32_t flags, uint32_t width, uint32_t height)',
    ),
    compressPlanar: library.func(
      'void *freerdp_bitmap_compress_planar(void *, void *, uint32_t format, uint32_t width, uint32_t height, uint32_t step, void *, void *size)',
    ),
    decompressPlanar: library.func(
      `int planar_decompress(void *, void *, uint32_t size, uint32_t, uint32_t, ${TARGET}, int flip)`,
    ),
    pointer: library.func(
      `int freerdp_image_copy_from_pointer_data(${TARGET}, void *, uint32_t, void *, uint32_t, uint32_t depth, void *palette)`,
    ),
  }
}

let loaded: ReturnType<typeof load> | undefined

const functions = (): ReturnType<typeof load> => {
  loaded ??= load()
  return loaded
}

const target = (width: number, height: number, format: number): [Buffer, ...number[]] => {
  const length = Math.ceil((format >>> 24) / 8)
  return [Buffer.alloc(width * height * length), format, width * length, 0, 0, width, height]
}

function must(done: unknown, what: string): void {
  if (!done) throw new Error(`FreeRDP's ${what} failed`)
}

/** Encodes at most 64 × 64 pixels, with a width of whole words. */
export function interleaved({ width, height, rgbx }: Pixels, depth: Depth): Buffer {
  const encoded = Buffer.alloc(64 * 64 * 4)
  const size = Uint32Array.of(encoded.length)
  const { compress, newInterleaved } = functions()
  const context = newInterleaved(1)
  must(
    compress(context, encoded, size, width, height, rgbx, FORMAT.RGBX32, width * 4, 0, 0, null, depth),
    'interleaved_compress',
  )
  return encoded.subarray(0, size[0])
}

/** Returns values of that depth, the highest row first. */
export function fromInterleaved(encoded: Buffer, width: number, height: number, depth: Depth): number[] {
  const { decompress, newInterleaved } = functions()
  const to = target(width, height, VALUES[depth])
  must(
    decompress(newInterleaved(0), encoded, encoded.length, width, height, depth, ...to, null),
    'interleaved_decompress',
  )
  const length = Math.ceil(depth / 8)
  return Array.from({ length: width * height }, (_, at) => to[0].readUIntLE(at * length, length))
}

/** Encodes with `flags` of PLANAR. The rows stay in the given order. */
export function planar({ width, height, rgbx }: Pixels, flags: number): Buffer {
  const encoded = Buffer.alloc(width * height * 8 + 64)
  const size = Uint32Array.of(encoded.length)
  const { compressPlanar, newPlanar } = functions()
  const context = newPlanar(flags, width, height)
  must(
    compressPlanar(context, rgbx, FORMAT.RGBX32, width, height, width * 4, encoded, size),
    'compress_planar',
  )
  return encoded.subarray(0, size[0])
}

export function fromPlanar(encoded: Buffer, width: number, height: number): Pixels {
  const { decompressPlanar, newPlanar } = functions()
  const to = target(width, height, FORMAT.RGBX32)
  must(
    decompressPlanar(newPlanar(0, width, height), encoded, encoded.length, width, height, ...to, 0),
    'planar_decompress',
  )
  return { width, height, rgbx: to[0] }
}

/**
 * Makes a pointer's picture from its masks; the fourth byte is alpha, and colours are not multiplied by it.
 */
export function fromPointer(
  { width, height }: { width: number; height: number },
  depth: number,
  colours: Buffer,
  transparency: Buffer,
): Pixels {
  const to = target(width, height, FORMAT.RGBA32)
  must(
    functions().pointer(...to, colours, colours.length, transparency, transparency.length, depth, null),
    'image_copy_from_pointer_data',
  )
  return { width, height, rgbx: to[0] }
}
