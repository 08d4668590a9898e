/** The bastion's own capability sets, for screens that it draws itself. */
import type { Capability } from './active.ts'
import { CAPABILITY, type Desktop, GENERAL_FLAG } from './capabilities.ts'
import { SERVER_USER } from './mcs.ts'
import { CHUNK_LENGTH } from './virtual-channel.ts'
import { ByteWriter } from './writer.ts'

/** NEGOTIATEORDERSUPPORT and ZEROBOUNDSDELTASSUPPORT are mandatory; no order is supported. */
const ORDER_FLAGS = 0x000a
const ORDER_BODY = 84
const INPUT_BODY = 84
/** Scancodes, buttons four and five, both forms of the fast path, and Unicode characters. */
const INPUT_FLAGS = 0x0001 | 0x0004 | 0x0008 | 0x0010 | 0x0020
/** OSMAJORTYPE_UNSPECIFIED; TS_CAPS_PROTOCOLVERSION. */
const OS_UNSPECIFIED = 0
const PROTOCOL_VERSION = 0x0200
const POINTER_CACHE = 25

/** Bitmaps and pointers only, on either path. */
export function buildOwnCapabilities({ width, height, depth }: Desktop): Capability[] {
  const set = (type: number, writer: ByteWriter): Capability => ({ type, body: writer.finish() })
  const general = new ByteWriter(20)
    .uint16(OS_UNSPECIFIED)
    .uint16(0)
    .uint16(PROTOCOL_VERSION)
    .zeros(4)
    .uint16(
      GENERAL_FLAG.fastPathOutput | GENERAL_FLAG.longCredentials | GENERAL_FLAG.noBitmapCompressionHeader,
    )
    .zeros(6)
    // Supports Refresh Rect and Suppress Output: everything is redrawn.
    .uint8(1)
    .uint8(1)
  const bitmap = new ByteWriter(24).uint16(depth).uint16(1).uint16(1).uint16(1).uint16(width).uint16(height)
  // resizable, compression allowed, several rectangles per update
  bitmap.zeros(2).uint16(1).uint16(1).zeros(2).uint16(1).zeros(2)
  const order = new ByteWriter(ORDER_BODY).zeros(20).uint16(1).uint16(20).zeros(2).uint16(1).uint16(0)
  order.uint16(ORDER_FLAGS).zeros(ORDER_BODY - 32)
  return [
    set(CAPABILITY.share, new ByteWriter(4).uint16(SERVER_USER).zeros(2)),
    set(CAPABILITY.general, general),
    set(CAPABILITY.bitmap, bitmap),
    set(CAPABILITY.font, new ByteWriter(4).uint16(1).zeros(2)),
    set(CAPABILITY.order, order),
    set(CAPABILITY.pointer, new ByteWriter(6).uint16(1).uint16(POINTER_CACHE).uint16(POINTER_CACHE)),
    set(CAPABILITY.input, new ByteWriter(INPUT_BODY).uint16(INPUT_FLAGS).zeros(INPUT_BODY - 2)),
    set(CAPABILITY.virtualChannel, new ByteWriter(8).uint32(0).uint32(CHUNK_LENGTH)),
  ]
}
