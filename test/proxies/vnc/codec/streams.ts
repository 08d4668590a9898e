/** Reads a server's stream to a list of events, and builds pieces of such a stream. */
import { Buffer } from 'node:buffer'
import type { Area } from '../../../../proxies/vnc/codec/client-messages.ts'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { type PixelFormat, RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import { encodeRectangleHeader, encodeUpdateHeader } from '../../../../proxies/vnc/codec/server-encoder.ts'
import { ServerStream, type ServerUnit } from '../../../../proxies/vnc/codec/server-stream.ts'
import { type Event, hex } from '../../stream-events.ts'

export interface Told {
  events: Event[]
  /** The most pieces in which any unit came. */
  pieces: number
  stream: ServerStream
}

/**
 * Feeds all chunks: returns units with all their bytes, and the ends of updates. Throws the errors of the
 * stream.
 */
export function tell(
  chunks: readonly Uint8Array[],
  init: { width: number; height: number; format?: PixelFormat },
  asked: Iterable<number> = Object.values(ENCODING),
  events: Event[] = [],
): Told {
  let unit: ServerUnit | undefined
  let bytes: Uint8Array[] = []
  const told: Told = { events, pieces: 0, stream: undefined as unknown as ServerStream }
  told.stream = new ServerStream(
    { format: RGB888, ...init },
    {
      begin(next) {
        if (unit) throw new Error('a unit began in a unit')
        unit = next
        bytes = []
      },
      bytes(piece, isEnd) {
        if (piece.length === 0) throw new Error('an empty piece')
        bytes.push(Buffer.from(piece))
        told.pieces = Math.max(told.pieces, bytes.length)
        if (!isEnd) return
        events.push([unit!.kind, { ...unit! }, hex(Buffer.concat(bytes))])
        unit = undefined
      },
      updateEnd() {
        events.push(['end'])
      },
    },
  )
  told.stream.ask(asked)
  for (const chunk of chunks) told.stream.feed(Uint8Array.from(chunk))
  return told
}

export const update = (...rectangles: Uint8Array[]): Buffer =>
  Buffer.concat([encodeUpdateHeader(rectangles.length), ...rectangles])

export const rectangle = (area: Area, encoding: number, ...data: Uint8Array[]): Buffer =>
  Buffer.concat([encodeRectangleHeader(area, encoding), ...data])

export const uint32 = (number: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(number)
  return bytes
}

/** Encodes Tight's lengths of one to three bytes. */
export function compactLength(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length)
  if (length < 0x4000) return Buffer.of((length & 0x7f) | 0x80, length >> 7)
  return Buffer.of((length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14)
}
