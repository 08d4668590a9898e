/** Recordings of imaginary desktops: messages of a VNC target, and the resulting picture. */
import { Buffer } from 'node:buffer'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { encodePixelFormat, RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import { FRAME, type FrameType } from '../../../../recordings/container/frames.ts'
import { RfbPainter } from '../../../../recordings/decode/graphics/rfb/painter.ts'
import { rectangle, uint32, update } from '../../../proxies/vnc/codec/streams.ts'
import { type Recorded, record } from '../../replay-support.ts'
import type { Made } from '../../support.ts'

export interface Step {
  /** Seconds since the recording began. */
  at: number
  type: FrameType
  payload: Uint8Array
}

/**
 * Records a channel of this kind with its frames, each at its time, and a shell that writes output between
 * them.
 */
export function recordDesktop(
  size: { width: number; height: number },
  steps: readonly Step[],
  more: (made: Made) => Promise<void> | void = () => undefined,
  kind: 'vnc' | 'rdp' = 'vnc',
): Promise<Recorded> {
  return record(async (made) => {
    const begin = made.clock.time
    const opening = { kind, subprotocol: kind.toUpperCase(), desktop: { ...size, name: 'desk' } }
    made.writer.write(FRAME.channelOpen, 1, Buffer.from(JSON.stringify(opening)))
    if (kind === 'vnc') made.writer.write(FRAME.pixelFormat, 1, encodePixelFormat(RGB888))
    for (const [turn, { at, type, payload }] of steps.entries()) {
      made.clock.time = begin + at * 1e6
      made.writer.write(type, 1, payload)
      if (turn % 16 === 0) await new Promise<void>((resolve) => made.writer.onDrain(resolve))
    }
    await more(made)
    made.writer.write(FRAME.channelClose, 1, Buffer.alloc(0))
  })
}

/** Returns a rectangle of one colour: 0xRRGGBB. */
export function filled(
  area: { x: number; y: number; width: number; height: number },
  colour: number,
): Buffer {
  const pixel = Buffer.alloc(4)
  pixel.writeUInt32LE(colour)
  return update(rectangle(area, ENCODING.RRE, uint32(0), pixel))
}

/** Returns a painter that has drawn nothing yet. */
export function begun(size: { width: number; height: number }): RfbPainter {
  const painter = new RfbPainter(size)
  painter.apply({ type: FRAME.pixelFormat, payload: encodePixelFormat(RGB888) })
  return painter
}
