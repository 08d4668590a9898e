/** What a VNC painter goes on with, as JSON: what a keyframe keeps beside the pixels (docs/recording-format.md). */
import { Buffer } from 'node:buffer'
import type { Cursor } from '../cursor.ts'
import { MalformedGraphics } from '../malformed.ts'
import type { PainterState } from '../painter.ts'

export interface RfbState {
  rectangles: number
  format: Uint8Array | undefined
  nextFormat: Uint8Array | undefined
  colours: Uint32Array | undefined
  /** Zlib, ZRLE, and Tight's four. */
  streams: Uint8Array[]
  cursor: Cursor | undefined
  pointer: { x: number; y: number } | undefined
}

/** Bytes in base64. */
interface Packed extends Pick<RfbState, 'rectangles' | 'pointer'> {
  format?: string
  nextFormat?: string
  colours?: string
  streams: string[]
  cursor?: Omit<Cursor, 'pixels'> & { pixels: string }
}

export function packState({
  rectangles,
  format,
  nextFormat,
  colours,
  streams,
  ...rest
}: RfbState): PainterState {
  const { cursor, pointer } = rest
  return {
    rectangles,
    format: format && base64(format),
    nextFormat: nextFormat && base64(nextFormat),
    colours: colours && base64(bytesOf(colours)),
    streams: streams.map(base64),
    cursor: cursor && { ...cursor, pixels: base64(bytesOf(cursor.pixels)) },
    pointer,
  }
}

/** Throws MalformedGraphics when it is none; an index is written by us, and damage to it is found before. */
export function unpackState(packed: PainterState): RfbState {
  const { rectangles, format, nextFormat, colours, streams, cursor, pointer } = packed as unknown as Packed
  if (typeof rectangles !== 'number' || !Array.isArray(streams)) {
    throw new MalformedGraphics('expected the state of a VNC painter, got something else')
  }
  return {
    rectangles,
    format: format === undefined ? undefined : bytes(format),
    nextFormat: nextFormat === undefined ? undefined : bytes(nextFormat),
    colours: colours === undefined ? undefined : words(colours),
    streams: streams.map(bytes),
    cursor: cursor && { ...cursor, pixels: words(cursor.pixels) },
    pointer,
  }
}

const base64 = (value: Uint8Array): string => Buffer.from(value).toString('base64')

function bytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'))
}

function bytesOf(value: Uint32Array): Uint8Array {
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
}

function words(text: string): Uint32Array {
  return new Uint32Array(bytes(text).buffer)
}
