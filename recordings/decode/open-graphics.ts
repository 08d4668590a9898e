/** Which painter draws a channel: by its kind. */
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

/** For the channel that this `channelOpen` begins; undefined where it shows no pixels, or more than are drawn. */
export function painterOf(payload: Uint8Array): Painter | undefined {
  const { kind, desktop } = channelOpenOf(payload)
  const Kind = KINDS.get(kind)
  return Kind && desktop && unlessMalformed(() => new Kind(desktop))
}

/** Goes on from a keyframe; undefined where it is none that can be gone on from. */
export function restorePainter(
  kind: string,
  state: PainterState,
  framebuffer: Framebuffer,
): Painter | undefined {
  return unlessMalformed(() => KINDS.get(kind)?.restore(state, framebuffer))
}

/** An empty desktop of this size; undefined where it is too large. */
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
