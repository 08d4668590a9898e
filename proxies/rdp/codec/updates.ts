/** Picture updates of both paths, slow (MS-RDPBCGR 2.2.9.1.1) and fast (2.2.9.1.2): a code and data. */
import { Buffer } from 'node:buffer'
import { ByteReader } from './reader.ts'
import { ByteWriter } from './writer.ts'

/** updateCode of the fast path. */
export const UPDATE = {
  orders: 0,
  bitmap: 1,
  palette: 2,
  synchronize: 3,
  surfaceCommands: 4,
  pointerHidden: 5,
  pointerDefault: 6,
  pointerPosition: 8,
  pointerColour: 9,
  pointerCached: 10,
  pointerNew: 11,
  pointerLarge: 12,
} as const

/**
 * Updates that a recording can show. Orders and surface commands are stripped from both sides' capabilities;
 * a target that sends them nevertheless would show the user more than the recording.
 */
const RECORDABLE: ReadonlySet<number> = new Set([
  UPDATE.bitmap,
  UPDATE.palette,
  UPDATE.synchronize,
  UPDATE.pointerHidden,
  UPDATE.pointerDefault,
  UPDATE.pointerPosition,
  UPDATE.pointerColour,
  UPDATE.pointerCached,
  UPDATE.pointerNew,
  UPDATE.pointerLarge,
])

export function isRecordable(code: number): boolean {
  return RECORDABLE.has(code)
}

export interface Update {
  /** One of UPDATE, or an unknown code. */
  code: number
  /** Data in fast-path form: for bitmaps and palettes it begins with updateType. */
  data: Uint8Array
}

/** updateType of the slow path; the values equal the fast path's codes. */
const SLOW_UPDATES: ReadonlySet<number> = new Set([
  UPDATE.orders,
  UPDATE.bitmap,
  UPDATE.palette,
  UPDATE.synchronize,
])

const POINTER_MESSAGE = { system: 1, position: 3, colour: 6, cached: 7, pointer: 8 } as const
const SYSTEM_POINTER = { hidden: 0, default: 0x7f00 } as const
const NOTHING = new Uint8Array(0)

/** Parses share data of type `update`. */
export function parseSlowUpdate(body: Uint8Array): Update {
  const reader = new ByteReader(body, 'slow-path update')
  const type = reader.expect('update type', reader.uint16(), ...SLOW_UPDATES)
  if (type === UPDATE.synchronize) return { code: UPDATE.synchronize, data: NOTHING }
  if (type !== UPDATE.orders) return { code: type, data: body }
  // Skips padding before the number of orders: the fast path has neither type nor padding here.
  reader.skip(2)
  const count = reader.bytes(2)
  reader.skip(2)
  return { code: type, data: Buffer.concat([count, reader.rest()]) }
}

/** Parses share data of type `pointer`. */
export function parseSlowPointer(body: Uint8Array): Update {
  const reader = new ByteReader(body, 'slow-path pointer')
  const type = reader.uint16()
  reader.skip(2)
  switch (type) {
    case POINTER_MESSAGE.system: {
      const shape = reader.uint32()
      const isHidden = reader.expect('system pointer', shape, ...Object.values(SYSTEM_POINTER)) === 0
      return { code: isHidden ? UPDATE.pointerHidden : UPDATE.pointerDefault, data: NOTHING }
    }
    case POINTER_MESSAGE.position:
      return { code: UPDATE.pointerPosition, data: reader.rest() }
    case POINTER_MESSAGE.colour:
      return { code: UPDATE.pointerColour, data: reader.rest() }
    case POINTER_MESSAGE.cached:
      return { code: UPDATE.pointerCached, data: reader.rest() }
    case POINTER_MESSAGE.pointer:
      return { code: UPDATE.pointerNew, data: reader.rest() }
    default:
      return reader.fail(`a pointer message that RDP has was expected, found ${type}`)
  }
}

/** Builds the body of share data of type `pointer`: one of the two system pointers. */
export function buildSlowPointer(code: typeof UPDATE.pointerHidden | typeof UPDATE.pointerDefault): Buffer {
  const shape = code === UPDATE.pointerHidden ? SYSTEM_POINTER.hidden : SYSTEM_POINTER.default
  return new ByteWriter(8).uint16(POINTER_MESSAGE.system).zeros(2).uint32(shape).finish()
}
