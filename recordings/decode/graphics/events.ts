/** Input and size events of a graphic session, as frames carry them (docs/recording-format.md). */
import { Buffer } from 'node:buffer'
import { MAX_VARINT_LENGTH, readVarint, writeVarint } from '../../container/format/varint.ts'

/** Largest side of a desktop: both RFB and RDP count pixels with 16 bits. */
export const MAX_DESKTOP_SIDE = 0xffff

const PRESSED = 1
const WITHHELD = 2

export interface PointerState {
  /** 0 is the session's user. */
  participant: number
  /** Mask of the pressed buttons: bit 0 is the left one (RFC 6143 7.5.5). */
  buttons: number
  x: number
  y: number
}

export interface KeyPress {
  participant: number
  isDown: boolean
  /** As in X11 (RFC 6143 7.5.4). Absent if the key is not recorded. */
  keysym?: number
  /** The key's place on the keyboard (XT scan code), if the viewer sends it. */
  code?: number
}

export interface DesktopSize {
  width: number
  height: number
}

/** Returns the payload of a `pointer` frame. */
export function encodePointer({ participant, buttons, x, y }: PointerState): Buffer {
  return encodeVarints([participant, buttons, x, y])
}

/** Returns undefined if the payload is malformed. */
export function parsePointer(payload: Uint8Array): PointerState | undefined {
  const [participant, buttons, x, y] = parseVarints(payload, 4) ?? []
  if (participant === undefined || buttons === undefined || x === undefined || y === undefined)
    return undefined
  return { participant, buttons, x, y }
}

/** Returns the payload of a `key` frame. */
export function encodeKey({ participant, isDown, keysym, code = 0 }: KeyPress): Buffer {
  const flags = (isDown ? PRESSED : 0) | (keysym === undefined ? WITHHELD : 0)
  return encodeVarints([participant, flags, ...(keysym === undefined ? [] : [keysym, code])])
}

/** Returns undefined if the payload is malformed. */
export function parseKey(payload: Uint8Array): KeyPress | undefined {
  const [participant, flags] = parseVarints(payload, 2) ?? []
  if (participant === undefined || flags === undefined) return undefined
  const press = { participant, isDown: (flags & PRESSED) !== 0 }
  if ((flags & WITHHELD) !== 0) return press
  const [, , keysym, code] = parseVarints(payload, 4) ?? []
  if (keysym === undefined || code === undefined) return undefined
  return { ...press, keysym, ...(code !== 0 && { code }) }
}

/** Returns the payload of a `desktop_size` frame. */
export function encodeDesktopSize({ width, height }: DesktopSize): Buffer {
  return encodeVarints([width, height])
}

/** Returns undefined if the payload is malformed. */
export function parseDesktopSize(payload: Uint8Array): DesktopSize | undefined {
  const [width, height] = parseVarints(payload, 2, MAX_DESKTOP_SIDE) ?? []
  return width === undefined || height === undefined ? undefined : { width, height }
}

function encodeVarints(values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * MAX_VARINT_LENGTH)
  let at = 0
  for (const value of values) at = writeVarint(bytes, at, value)
  return bytes.subarray(0, at)
}

function parseVarints(payload: Uint8Array, count: number, limit?: number): number[] | undefined {
  const values: number[] = []
  let at = 0
  while (values.length < count) {
    const read = readVarint(payload, at, limit)
    if (!read) return undefined
    values.push(read.value)
    at = read.offset
  }
  return values
}
