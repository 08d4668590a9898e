/** State of a VNC painter as JSON: the part of a keyframe beside the pixels (docs/recording-format.md). */
import type { Cursor } from '../cursor.ts'
import { MalformedGraphics } from '../malformed.ts'
import {
  type PackedCursor,
  packBytes,
  packCursor,
  packWords,
  unpackBytes,
  unpackCursor,
  unpackWords,
} from '../packing.ts'
import type { PainterState } from '../painter.ts'

export interface RfbState {
  rectangles: number
  format: Uint8Array | undefined
  nextFormat: Uint8Array | undefined
  colours: Uint32Array | undefined
  /** Streams of Zlib, ZRLE, and Tight's four. */
  streams: (Uint8Array | 'broken')[]
  cursor: Cursor | undefined
  pointer: { x: number; y: number } | undefined
}

const BROKEN = 'broken'

/** The state with its bytes in base64. */
interface Packed extends Pick<RfbState, 'rectangles' | 'pointer'> {
  format?: string
  nextFormat?: string
  colours?: string
  /** Null stands for a broken stream. */
  streams: (string | null)[]
  cursor?: PackedCursor
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
    format: format && packBytes(format),
    nextFormat: nextFormat && packBytes(nextFormat),
    colours: colours && packWords(colours),
    streams: streams.map((stream) => (stream === BROKEN ? null : packBytes(stream))),
    cursor: cursor && packCursor(cursor),
    pointer,
  }
}

/** Throws MalformedGraphics if the state is invalid. Damage to our own index is found before. */
export function unpackState(packed: PainterState): RfbState {
  const { rectangles, format, nextFormat, colours, streams, cursor, pointer } = packed as unknown as Packed
  if (typeof rectangles !== 'number' || !Array.isArray(streams)) {
    throw new MalformedGraphics('expected the state of a VNC painter, got something else')
  }
  return {
    rectangles,
    format: format === undefined ? undefined : unpackBytes(format),
    nextFormat: nextFormat === undefined ? undefined : unpackBytes(nextFormat),
    colours: colours === undefined ? undefined : unpackWords(colours),
    streams: streams.map((stream) => (stream === null ? BROKEN : unpackBytes(stream))),
    cursor: cursor && unpackCursor(cursor),
    pointer,
  }
}
