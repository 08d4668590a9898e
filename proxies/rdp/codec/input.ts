/** Keyboard and pointer input of both paths: slow (MS-RDPBCGR 2.2.8.1.1.3) and fast (2.2.8.1.2). */
import { Buffer } from 'node:buffer'
import { fastPathHeader, readFastPath } from './fast-path.ts'
import { ByteReader } from './reader.ts'
import { ByteWriter } from './writer.ts'

export type InputEvent =
  /** A scancode of PC set 1; `extended`: 0 no prefix, 1 after E0, 2 after E1. */
  | { kind: 'key'; code: number; extended: 0 | 1 | 2; isDown: boolean }
  /** A UTF-16 code unit. */
  | { kind: 'character'; code: number; isDown: boolean }
  /** `flags`: bits of POINTER_FLAG. */
  | { kind: 'pointer'; flags: number; x: number; y: number }
  /** Buttons four and five; `flags`: PTRXFLAGS, 0x8000 for down, 1 and 2 for the button. */
  | { kind: 'pointer-extended'; flags: number; x: number; y: number }
  /** Movement in pixels from the last position. */
  | { kind: 'pointer-relative'; flags: number; x: number; y: number }
  /** Bits: scroll 1, num 2, caps 4, kana 8. */
  | { kind: 'locks'; flags: number }

/** PTRFLAGS. The low nine bits hold the wheel's rotation in two's complement. */
export const POINTER_FLAG = {
  horizontalWheel: 0x0400,
  wheel: 0x0200,
  move: 0x0800,
  left: 0x1000,
  right: 0x2000,
  middle: 0x4000,
  down: 0x8000,
} as const

/** Returns the wheel's rotation: 120 per notch, negative toward the user. */
export function wheelOf(flags: number): number {
  const way = flags & 0x1ff
  return way & 0x100 ? way - 0x200 : way
}

/** eventCode of the fast path. */
const FAST = {
  scancode: 0,
  mouse: 1,
  mouseExtended: 2,
  synchronize: 3,
  unicode: 4,
  relative: 5,
  timestamp: 6,
} as const
const FAST_FLAG = { release: 1, extended: 2, extended1: 4 } as const
/** messageType of the slow path. */
const SLOW = {
  synchronize: 0x0000,
  unused: 0x0002,
  scancode: 0x0004,
  unicode: 0x0005,
  mouse: 0x8001,
  mouseExtended: 0x8002,
  relative: 0x8004,
} as const
const SLOW_FLAG = { extended: 0x0100, extended1: 0x0200, release: 0x8000 } as const

const asSigned = (value: number) => (value & 0x8000 ? value - 0x10000 : value)

/** Parses a whole PDU. */
export function parseFastPathInput(pdu: Uint8Array): InputEvent[] {
  const { head, reader } = readFastPath(pdu, 'fast-path input')
  const inHead = (head >> 2) & 0xf
  const count = inHead === 0 ? reader.uint8() : inHead
  if (count === 0) reader.fail('at least one event was expected, found none')
  const events: InputEvent[] = []
  for (let left = count; left > 0; left--) {
    const event = readFastEvent(reader)
    if (event) events.push(event)
  }
  reader.end()
  return events
}

function readFastEvent(reader: ByteReader): InputEvent | undefined {
  const head = reader.uint8()
  const flags = head & 0x1f
  const isDown = (flags & FAST_FLAG.release) === 0
  switch (head >> 5) {
    case FAST.scancode: {
      const extended = flags & FAST_FLAG.extended ? 1 : flags & FAST_FLAG.extended1 ? 2 : 0
      return { kind: 'key', code: reader.uint8(), extended, isDown }
    }
    case FAST.mouse:
      return readPointer(reader, 'pointer')
    case FAST.mouseExtended:
      return readPointer(reader, 'pointer-extended')
    case FAST.relative:
      return readRelative(reader)
    case FAST.synchronize:
      return { kind: 'locks', flags: flags & 0xf }
    case FAST.unicode:
      return { kind: 'character', code: reader.uint16(), isDown }
    case FAST.timestamp:
      reader.skip(4)
      return undefined
    default:
      return reader.fail(`an event that RDP has was expected, found ${head >> 5}`)
  }
}

/** Parses share data of type `input`. */
export function parseSlowInput(body: Uint8Array): InputEvent[] {
  const reader = new ByteReader(body, 'slow-path input')
  const count = reader.uint16()
  reader.skip(2)
  const events: InputEvent[] = []
  for (let left = count; left > 0; left--) {
    // the client's time
    reader.skip(4)
    const type = reader.uint16()
    const event = readSlowEvent(new ByteReader(reader.bytes(6), 'slow-path input'), type)
    if (event) events.push(event)
  }
  reader.end()
  return events
}

function readSlowEvent(reader: ByteReader, type: number): InputEvent | undefined {
  switch (type) {
    case SLOW.scancode: {
      const flags = reader.uint16()
      const extended = flags & SLOW_FLAG.extended ? 1 : flags & SLOW_FLAG.extended1 ? 2 : 0
      return {
        kind: 'key',
        code: reader.uint16() & 0xff,
        extended,
        isDown: (flags & SLOW_FLAG.release) === 0,
      }
    }
    case SLOW.unicode: {
      const flags = reader.uint16()
      return { kind: 'character', code: reader.uint16(), isDown: (flags & SLOW_FLAG.release) === 0 }
    }
    case SLOW.mouse:
      return readPointer(reader, 'pointer')
    case SLOW.mouseExtended:
      return readPointer(reader, 'pointer-extended')
    case SLOW.relative:
      return readRelative(reader)
    case SLOW.synchronize:
      reader.skip(2)
      return { kind: 'locks', flags: reader.uint32() & 0xf }
    case SLOW.unused:
      return undefined
    default:
      return reader.fail(`an event that RDP has was expected, found 0x${type.toString(16)}`)
  }
}

function readPointer(reader: ByteReader, kind: 'pointer' | 'pointer-extended'): InputEvent {
  return { kind, flags: reader.uint16(), x: reader.uint16(), y: reader.uint16() }
}

function readRelative(reader: ByteReader): InputEvent {
  const flags = reader.uint16()
  return { kind: 'pointer-relative', flags, x: asSigned(reader.uint16()), y: asSigned(reader.uint16()) }
}

/** Events per PDU: the count is one byte. */
export const FAST_PATH_EVENTS = 255

/** Builds a PDU with at most FAST_PATH_EVENTS events. */
export function buildFastPathInput(events: readonly InputEvent[]): Buffer {
  if (FAST_PATH_EVENTS < events.length) {
    throw new RangeError(`a fast-path PDU has at most ${FAST_PATH_EVENTS} events, not ${events.length}`)
  }
  const writer = new ByteWriter(events.length * 7 + 1).uint8(events.length)
  for (const event of events) writeFastEvent(writer, event)
  const body = writer.finish()
  return Buffer.concat([fastPathHeader(0, body.length), body])
}

function writeFastEvent(writer: ByteWriter, event: InputEvent): void {
  const head = (code: number, flags: number) => writer.uint8((code << 5) | flags)
  switch (event.kind) {
    case 'key': {
      const extended = [0, FAST_FLAG.extended, FAST_FLAG.extended1][event.extended]!
      head(FAST.scancode, (event.isDown ? 0 : FAST_FLAG.release) | extended).uint8(event.code)
      return
    }
    case 'character':
      head(FAST.unicode, event.isDown ? 0 : FAST_FLAG.release).uint16(event.code)
      return
    case 'locks':
      head(FAST.synchronize, event.flags)
      return
    default: {
      const codes = {
        pointer: FAST.mouse,
        'pointer-extended': FAST.mouseExtended,
        'pointer-relative': FAST.relative,
      } as const
      head(codes[event.kind], 0)
        .uint16(event.flags)
        .uint16(event.x & 0xffff)
        .uint16(event.y & 0xffff)
    }
  }
}
