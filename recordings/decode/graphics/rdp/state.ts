/** State of an RDP painter as JSON: the part of a keyframe beside the pixels (docs/recording-format.md). */
import { MalformedGraphics } from '../malformed.ts'
import { type PackedCursor, packCursor, packWords, unpackCursor, unpackWords } from '../packing.ts'
import type { PainterState } from '../painter.ts'
import type { DesktopState } from './desktop.ts'

export interface RdpState extends DesktopState {
  /** Position of the user's own pointer. */
  mouse: { x: number; y: number } | undefined
}

interface Packed extends Pick<RdpState, 'position' | 'mouse'> {
  palette: string
  pointer: 'hidden' | 'default' | PackedCursor
  cached: { cacheIndex: number; cursor: PackedCursor }[]
}

export function packState({ palette, pointer, cached, position, mouse }: RdpState): PainterState {
  return {
    palette: packWords(palette),
    pointer: typeof pointer === 'string' ? pointer : packCursor(pointer),
    cached: cached.map(({ cacheIndex, cursor }) => ({ cacheIndex, cursor: packCursor(cursor) })),
    position,
    mouse,
  }
}

/** Throws MalformedGraphics if the state is invalid. Damage to our own index is found before. */
export function unpackState(packed: PainterState): RdpState {
  const { palette, pointer, cached, position, mouse } = packed as unknown as Packed
  if (typeof palette !== 'string' || pointer === undefined || !Array.isArray(cached)) {
    throw new MalformedGraphics('expected the state of an RDP painter, got something else')
  }
  return {
    palette: unpackWords(palette),
    pointer: typeof pointer === 'string' ? pointer : unpackCursor(pointer),
    cached: cached.map(({ cacheIndex, cursor }) => ({ cacheIndex, cursor: unpackCursor(cursor) })),
    position,
    mouse,
  }
}
