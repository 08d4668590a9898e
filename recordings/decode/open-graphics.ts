/** Chooses the painter of a channel by its kind. */
import { channelOpenOf } from './frames/channel.ts'
import { Framebuffer } from './graphics/framebuffer.ts'
import { MalformedGraphics } from './graphics/malformed.ts'
import type { Painter, PainterState } from './graphics/painter.ts'
import { RdpPainter } from './graphics/rdp/painter.ts'
import type { Size } from './graphics/rectangle.ts'
import { RfbPainter } from './graphics/rfb/painter.ts'

interface PainterKind {
  new (size: Size): Painter
  restore(state: PainterState, framebuffer: Framebuffer): Painter
}

const KINDS: ReadonlyMap<string, PainterKind> = new Map<string, PainterKind>([
  ['vnc', RfbPainter],
  ['rdp', RdpPainter],
])

/**
 * Returns a painter for the channel of this `channelOpen`, or undefined if it shows no pixels, or more than
 * can be drawn.
 */
export function painterOf(payload: Uint8Array): Painter | undefined {
  const { kind, desktop } = channelOpenOf(payload)
  const Kind = KINDS.get(kind)
  return Kind && desktop && unlessMalformed(() => new Kind(desktop))
}

/** Returns a painter that continues from a keyframe, or undefined if the keyframe is invalid. */
export function restorePainter(
  kind: string,
  state: PainterState,
  framebuffer: Framebuffer,
): Painter | undefined {
  return unlessMalformed(() => KINDS.get(kind)?.restore(state, framebuffer))
}

/** Returns an empty desktop of this size, or undefined if the size is too large. */
export function framebufferOf(size: Size): Framebuffer | undefined {
  return unlessMalformed(() => new Framebuffer(size))
}

function unlessMalformed<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch (error) {
    if (error instanceof MalformedGraphics) return undefined
    throw error
  }
}
