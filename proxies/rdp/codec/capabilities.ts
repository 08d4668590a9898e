/**
 * Capability sets (MS-RDPBCGR 2.2.7): what of them is read, and what is taken out so that nothing but bitmaps,
 * palettes and pointers comes to a client, and to its recording. Sets are changed in place of being built anew; those
 * that nobody here knows are left out.
 */
import { Buffer } from 'node:buffer'
import type { Capability } from './active.ts'
import { DESKTOP_LIMIT, DESKTOP_PIXEL_LIMIT } from './client-data.ts'
import { POINTER_CACHE_LIMIT } from './picture-heads.ts'
import { ByteReader } from './reader.ts'

export const CAPABILITY = {
  general: 1,
  bitmap: 2,
  order: 3,
  bitmapCache: 4,
  control: 5,
  activation: 7,
  pointer: 8,
  share: 9,
  colourCache: 10,
  sound: 12,
  input: 13,
  font: 14,
  brush: 15,
  glyphCache: 16,
  offscreenCache: 17,
  bitmapCacheHost: 18,
  bitmapCacheRevision2: 19,
  virtualChannel: 20,
  nineGrid: 21,
  gdiPlus: 22,
  rail: 23,
  window: 24,
  desktopComposition: 25,
  multifragment: 26,
  largePointer: 27,
  surfaceCommands: 28,
  bitmapCodecs: 29,
  frameAcknowledge: 30,
} as const

/** extraFlags of the general set. */
export const GENERAL_FLAG = {
  fastPathOutput: 0x0001,
  longCredentials: 0x0004,
  autoReconnect: 0x0008,
  noBitmapCompressionHeader: 0x0400,
} as const

/** drawingFlags of the bitmap set. */
const DRAWING_FLAG = { dynamicColourFidelity: 2, subsampling: 4 } as const

const KNOWN: ReadonlySet<number> = new Set(Object.values(CAPABILITY))

/** Both sides are without them. */
const REMOVED: ReadonlySet<number> = new Set([
  CAPABILITY.bitmapCodecs,
  CAPABILITY.surfaceCommands,
  CAPABILITY.frameAcknowledge,
  CAPABILITY.rail,
  CAPABILITY.window,
  CAPABILITY.desktopComposition,
])

/** Of a client they say what may be drawn with; without them that is nothing. */
const REMOVED_OF_CLIENTS: ReadonlySet<number> = new Set([
  ...REMOVED,
  CAPABILITY.offscreenCache,
  CAPABILITY.nineGrid,
  CAPABILITY.gdiPlus,
])

/** Places within the sets' bodies. */
const GENERAL_EXTRA_FLAGS = 10
const GENERAL_REFRESH = 18
const BITMAP = { depth: 0, width: 8, height: 10, drawingFlags: 19 }
const ORDERS = { support: 32, length: 32, supportEx: 66 }
const GLYPH_SUPPORT = 44
/** Sizes of both caches of pointers. */
const POINTER = { sizes: [2, 4] }
/**
 * Bytes of an update, of which a client says how many it takes. What has more a server does not send at all (FreeRDP's),
 * so that somebody who says few would not be seen: that many every client has room for that says anything.
 */
const UPDATE_LEAST = 0xffff

/** What the server says to the client: nothing that the recording could not show. */
export function stripDemand(capabilities: readonly Capability[]): Capability[] {
  return capabilities
    .filter(({ type }) => KNOWN.has(type) && !REMOVED.has(type))
    .map((capability) => {
      switch (capability.type) {
        case CAPABILITY.general:
          return patched(capability, clearReconnect)
        case CAPABILITY.bitmap:
          return patched(capability, clearDrawingFlags)
        case CAPABILITY.virtualChannel:
          return patched(capability, clearFlags)
        default:
          return capability
      }
    })
}

/** What the client says to the server: it can draw bitmaps, on all of the desktop that it was offered, and nothing else. */
export function stripConfirm(capabilities: readonly Capability[], desktop: Desktop): Capability[] {
  return capabilities
    .filter(({ type }) => KNOWN.has(type) && !REMOVED_OF_CLIENTS.has(type))
    .map((capability) => {
      switch (capability.type) {
        case CAPABILITY.general:
          return patched(capability, clearReconnect)
        case CAPABILITY.bitmap:
          return patched(capability, (body) => {
            clearDrawingFlags(body)
            writeDesktop(body, desktop)
          })
        case CAPABILITY.multifragment:
          return patched(capability, (body) => {
            if (4 <= body.length) body.writeUInt32LE(Math.max(UPDATE_LEAST, body.readUInt32LE()))
          })
        case CAPABILITY.order:
          return patched(capability, clearOrders)
        case CAPABILITY.glyphCache:
          return patched(capability, (body) => clear(body, GLYPH_SUPPORT, 2))
        case CAPABILITY.virtualChannel:
          return patched(capability, clearFlags)
        case CAPABILITY.pointer:
          return patched(capability, limitPointers)
        default:
          return capability
      }
    })
}

function patched({ type, body }: Capability, patch: (body: Buffer) => void): Capability {
  const copy = Buffer.from(body)
  patch(copy)
  return { type, body: copy }
}

/** As much of it as is there: old peers' sets end early. */
function clear(body: Buffer, at: number, length: number): void {
  body.fill(0, Math.min(at, body.length), Math.min(at + length, body.length))
}

/** Channels are not compressed in either direction. */
const clearFlags = (body: Buffer) => clear(body, 0, 4)

/** Flags for orders stay: NEGOTIATEORDERSUPPORT and ZEROBOUNDSDELTASSUPPORT have to be there. */
function clearOrders(body: Buffer): void {
  clear(body, ORDERS.support, ORDERS.length)
  clear(body, ORDERS.supportEx, 2)
}

/** Of a target that believes in more, pointers would come that no recording keeps. */
function limitPointers(body: Buffer): void {
  for (const at of POINTER.sizes) {
    if (at + 2 <= body.length) body.writeUInt16LE(Math.min(body.readUInt16LE(at), POINTER_CACHE_LIMIT), at)
  }
}

function clearDrawingFlags(body: Buffer): void {
  if (BITMAP.drawingFlags < body.length) {
    body[BITMAP.drawingFlags]! &= ~(DRAWING_FLAG.dynamicColourFidelity | DRAWING_FLAG.subsampling)
  }
}

function writeDesktop(body: Buffer, { width, height, depth }: Desktop): void {
  if (body.length < BITMAP.height + 2) return
  body.writeUInt16LE(depth, BITMAP.depth)
  body.writeUInt16LE(width, BITMAP.width)
  body.writeUInt16LE(height, BITMAP.height)
}

/** A client comes again through the bastion's sign-in only. */
function clearReconnect(body: Buffer): void {
  if (GENERAL_EXTRA_FLAGS < body.length) body[GENERAL_EXTRA_FLAGS]! &= ~GENERAL_FLAG.autoReconnect
}

export interface Desktop {
  width: number
  height: number
  /** Bits a pixel. */
  depth: number
}

/** Of the bitmap set; throws where there is none, or with sizes and depths that no desktop has. */
export function readDesktop(capabilities: readonly Capability[]): Desktop {
  const reader = new ByteReader(findCapability(capabilities, CAPABILITY.bitmap), 'bitmap capability set')
  const depth = reader.uint16()
  reader.expect('colour depth', depth, 8, 15, 16, 24, 32)
  reader.skip(BITMAP.width - 2)
  const width = reader.uint16()
  const height = reader.uint16()
  if (width < 1 || height < 1 || DESKTOP_LIMIT < Math.max(width, height)) {
    reader.fail(`a desktop of 1 to ${DESKTOP_LIMIT} pixels a side was expected, found ${width}x${height}`)
  }
  if (DESKTOP_PIXEL_LIMIT < width * height) {
    reader.fail(`a desktop of at most ${DESKTOP_PIXEL_LIMIT} pixels was expected, found ${width}x${height}`)
  }
  return { width, height, depth }
}

/** Of a set's body; empty where there is none. */
export function findCapability(capabilities: readonly Capability[], type: number): Uint8Array {
  return capabilities.find((capability) => capability.type === type)?.body ?? new Uint8Array(0)
}

/** Whether the server draws parts of its desktop again when it is asked to. */
export function drawsAgain(capabilities: readonly Capability[]): boolean {
  return findCapability(capabilities, CAPABILITY.general)[GENERAL_REFRESH] === 1
}

/** Whether the client takes pictures on the fast path. */
export function takesFastPath(capabilities: readonly Capability[]): boolean {
  const general = findCapability(capabilities, CAPABILITY.general)
  return ((general[GENERAL_EXTRA_FLAGS] ?? 0) & GENERAL_FLAG.fastPathOutput) !== 0
}
