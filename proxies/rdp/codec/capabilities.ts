/**
 * Capability sets (MS-RDPBCGR 2.2.7): reads the needed fields, and removes capabilities so that a client and
 * its recording receive only bitmaps, palettes and pointers. Sets are patched, and unknown ones dropped.
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

/** Removed from both sides' sets. */
const REMOVED: ReadonlySet<number> = new Set([
  CAPABILITY.bitmapCodecs,
  CAPABILITY.surfaceCommands,
  CAPABILITY.frameAcknowledge,
  CAPABILITY.rail,
  CAPABILITY.window,
  CAPABILITY.desktopComposition,
])

/** Removed from clients' sets: an absent set means that the drawing feature is unsupported. */
const REMOVED_OF_CLIENTS: ReadonlySet<number> = new Set([
  ...REMOVED,
  CAPABILITY.offscreenCache,
  CAPABILITY.nineGrid,
  CAPABILITY.gdiPlus,
])

/** Offsets within the sets' bodies. */
const GENERAL_EXTRA_FLAGS = 10
const GENERAL_REFRESH = 18
const BITMAP = { depth: 0, width: 8, height: 10, drawingFlags: 19 }
const ORDERS = { support: 32, length: 32, supportEx: 66 }
const GLYPH_SUPPORT = 44
/** Offsets of the sizes of both pointer caches. */
const POINTER = { sizes: [2, 4] }
/**
 * Least MaxRequestSize of a client, in bytes. Servers (FreeRDP's) drop larger updates, so a client could hide
 * its session with a small value. Every client that sends the set has room for this many.
 */
const UPDATE_LEAST = 0xffff

/** Returns the server's sets for the client, without anything that the recording could not show. */
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

/** Returns the client's sets for the server: only bitmaps, on the whole desktop offered to the client. */
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

/** Clears the bytes that are present: the sets of old peers end early. */
function clear(body: Buffer, at: number, length: number): void {
  body.fill(0, Math.min(at, body.length), Math.min(at + length, body.length))
}

/** Disables the compression of channels in both directions. */
const clearFlags = (body: Buffer) => clear(body, 0, 4)

/** Keeps orderFlags: NEGOTIATEORDERSUPPORT and ZEROBOUNDSDELTASSUPPORT are mandatory. */
function clearOrders(body: Buffer): void {
  clear(body, ORDERS.support, ORDERS.length)
  clear(body, ORDERS.supportEx, 2)
}

/** Limits the caches: with larger ones the target would send pointers that no recording keeps. */
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

/** Disables auto-reconnection: a client reconnects through the bastion's sign-in only. */
function clearReconnect(body: Buffer): void {
  if (GENERAL_EXTRA_FLAGS < body.length) body[GENERAL_EXTRA_FLAGS]! &= ~GENERAL_FLAG.autoReconnect
}

export interface Desktop {
  width: number
  height: number
  /** Bits per pixel. */
  depth: number
}

/** Reads the bitmap set. Throws if it is missing or if sizes or depth are out of range. */
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

/** Returns a set's body, empty if the set is missing. */
export function findCapability(capabilities: readonly Capability[], type: number): Uint8Array {
  return capabilities.find((capability) => capability.type === type)?.body ?? new Uint8Array(0)
}

/** Reports whether the server redraws parts of its desktop on request. */
export function drawsAgain(capabilities: readonly Capability[]): boolean {
  return findCapability(capabilities, CAPABILITY.general)[GENERAL_REFRESH] === 1
}

/** Reports whether the client accepts pictures on the fast path. */
export function takesFastPath(capabilities: readonly Capability[]): boolean {
  const general = findCapability(capabilities, CAPABILITY.general)
  return ((general[GENERAL_EXTRA_FLAGS] ?? 0) & GENERAL_FLAG.fastPathOutput) !== 0
}
