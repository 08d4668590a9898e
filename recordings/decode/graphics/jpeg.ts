/**
 * Decodes JPEG with libjpeg-turbo in WebAssembly: viewers use the same library, so the colours match. It has
 * its own memory, which is released after an error in it.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { MalformedGraphics } from './malformed.ts'
import type { Size } from './rectangle.ts'

/** TJPF_RGBA of libjpeg-turbo. */
const RGBA = 7
/** Largest picture; servers send rectangles of some ten thousand pixels. */
export const MAX_JPEG_PIXELS = 2 ** 24
/** Bytes of memory that are kept for the next picture. */
const KEPT_MEMORY = 32 * 1024 * 1024
/** Scans of a picture that is not progressive: one for each colour component. */
const MAX_SCANS = 4
const MARKER = 0xff
const SOI = 0xd8
const SOS = 0xda
const EOI = 0xd9
/**
 * Baseline and extended sequential frames, Huffman coded; the other kinds are progressive, lossless or
 * arithmetic.
 */
const SEQUENTIAL = [0xc0, 0xc1]
const FRAMES_FROM = 0xc0
const FRAMES_TO = 0xcf
/** Markers in the range of the frames that do not start a frame. */
const NO_FRAMES = [0xc4, 0xc8, 0xcc]

/** The part of WebAssembly that is used here: its types come only with those of browsers. */
declare const WebAssembly: {
  Module: new (code: Uint8Array) => object
  Instance: new (module: object, imports: Record<string, object>) => { exports: object }
}

interface Codec {
  memory: { buffer: ArrayBuffer }
  malloc(length: number): number
  free(at: number): void
  tjInitDecompress(): number
  tjDestroy(codec: number): number
  tjDecompress2(
    codec: number,
    source: number,
    length: number,
    target: number,
    width: number,
    pitch: number,
    height: number,
    format: number,
    flags: number,
  ): number
}

let codeOfCodec: object | undefined
let codec: Codec | undefined

/**
 * Returns the colours of a picture, row by row. Throws MalformedGraphics if it has another size or is
 * progressive: servers send no progressive pictures, and a few bytes of one can cost hours of work.
 */
export function decodeJpeg(bytes: Uint8Array, size: Size): Uint32Array {
  requireOf(bytes, size)
  codec ??= start()
  try {
    const colours = decode(codec, bytes, size)
    if (codec.memory.buffer.byteLength > KEPT_MEMORY) codec = undefined
    return colours
  } catch (error) {
    // Release the codec with its memory of this picture.
    codec = undefined
    if (error instanceof MalformedGraphics) throw error
    throw new MalformedGraphics('expected a JPEG, got one that cannot be decoded')
  }
}

function decode(codec: Codec, bytes: Uint8Array, { width, height }: Size): Uint32Array {
  const handle = codec.tjInitDecompress()
  const source = codec.malloc(bytes.length)
  const target = codec.malloc(width * height * 4)
  if (handle === 0 || source === 0 || target === 0) {
    throw new MalformedGraphics(`expected memory for a JPEG of ${width} × ${height}, got none`)
  }
  new Uint8Array(codec.memory.buffer, source, bytes.length).set(bytes)
  const pitch = width * 4
  const status = codec.tjDecompress2(handle, source, bytes.length, target, width, pitch, height, RGBA, 0)
  if (status !== 0) throw new MalformedGraphics('expected a whole JPEG, got one that is cut or damaged')
  const colours = new Uint32Array(codec.memory.buffer.slice(target, target + pitch * height))
  codec.free(source)
  codec.free(target)
  codec.tjDestroy(handle)
  return colours
}

/** Reads the markers (ITU T.81 annex B) up to the end. */
function requireOf(bytes: Uint8Array, { width, height }: Size): void {
  if (width * height > MAX_JPEG_PIXELS) {
    throw new MalformedGraphics(
      `expected a JPEG of at most ${MAX_JPEG_PIXELS} pixels, got ${width} × ${height}`,
    )
  }
  if (bytes[0] !== MARKER || bytes[1] !== SOI)
    throw new MalformedGraphics('expected a JPEG, got something else')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let scans = 0
  let hasFrame = false
  for (let at = 2; at + 3 < bytes.length; ) {
    const marker = bytes[at + 1]!
    if (bytes[at] !== MARKER || marker === MARKER || !hasLength(marker)) {
      at++
      continue
    }
    if (marker === SOS) scans++
    if (FRAMES_FROM <= marker && marker <= FRAMES_TO && !NO_FRAMES.includes(marker)) {
      if (!SEQUENTIAL.includes(marker) || at + 8 >= bytes.length) {
        throw new MalformedGraphics(`expected a sequential JPEG, got one of kind ${marker.toString(16)}`)
      }
      const found = { width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
      if (hasFrame || found.width !== width || found.height !== height) {
        throw new MalformedGraphics(
          `expected a JPEG of ${width} × ${height}, got one of ${found.width} × ${found.height}`,
        )
      }
      hasFrame = true
    }
    at += 2 + view.getUint16(at + 2)
  }
  if (!hasFrame || scans > MAX_SCANS) {
    throw new MalformedGraphics(`expected a JPEG with 1 to ${MAX_SCANS} scans, got ${scans}`)
  }
}

/**
 * Returns whether a length follows the marker. Not after the zero behind an FF in a scan's data, a restart,
 * begin or end.
 */
function hasLength(marker: number): boolean {
  return marker !== 0 && marker !== 1 && !(marker >= 0xd0 && marker <= EOI)
}

function start(): Codec {
  codeOfCodec ??= new WebAssembly.Module(
    readFileSync(createRequire(import.meta.url).resolve('@cwasm/jpeg-turbo/jpeg-turbo.wasm')),
  )
  const fail = () => {
    throw new Error('libjpeg-turbo gave up')
  }
  const env = { setjmp: () => 0, longjmp: fail }
  const wasi = {
    environ_sizes_get: () => 0,
    ...Object.fromEntries(
      ['environ_get', 'proc_exit', 'fd_close', 'fd_seek', 'fd_write'].map((name) => [name, fail]),
    ),
  }
  const instance = new WebAssembly.Instance(codeOfCodec, { env, wasi_snapshot_preview1: wasi })
  return instance.exports as Codec
}
