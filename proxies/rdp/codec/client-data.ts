/** A client's data in GCC's user data (MS-RDPBCGR 2.2.1.3), and the version of it sent to the target. */
import { Buffer } from 'node:buffer'
import { BLOCK, type DataBlock, findBlock } from './data-blocks.ts'
import { ByteReader } from './reader.ts'
import { ansiField, ansiText, untilNul, utf16Text } from './utf16.ts'
import { ByteWriter } from './writer.ts'

/** Pixels per side; MS-RDPEDISP has the same limit for later changes of size. */
export const DESKTOP_LIMIT = 8192
/** Pixels of a desktop that a recording can draw. */
export const DESKTOP_PIXEL_LIMIT = 2 ** 25
/** Least pixels of a desktop requested from a target: on a smaller one the session could not be seen. */
export const DESKTOP_LEAST = { width: 512, height: 384 } as const
/** Static virtual channels (MS-RDPBCGR 2.2.1.3.4). */
export const CHANNEL_LIMIT = 31
const CHANNEL_NAME = 8

/** Offsets of the CS_CORE fields changed for the target; fields after the first 128 bytes are optional. */
const CORE = {
  mandatory: 128,
  highColorDepth: 136,
  supportedColorDepths: 138,
  earlyFlags: 140,
  selected: 208,
  scale: 222,
}
/** desktopScaleFactor, in percent. */
const SCALE = { least: 100, most: 500 } as const

/** earlyCapabilityFlags of the client. */
export const EARLY_FLAG = {
  errorInfo: 0x0001,
  want32Bits: 0x0002,
  statusInfo: 0x0004,
  strongAsymmetricKeys: 0x0008,
  connectionType: 0x0020,
  monitorLayout: 0x0040,
  networkAutodetect: 0x0080,
  graphicsPipeline: 0x0100,
  dynamicTimeZone: 0x0200,
  heartbeat: 0x0400,
  skipChannelJoin: 0x0800,
} as const

/** Cleared for the target: the bastion neither forwards nor decodes these features. */
const HIDDEN_EARLY_FLAGS =
  EARLY_FLAG.networkAutodetect |
  EARLY_FLAG.graphicsPipeline |
  EARLY_FLAG.heartbeat |
  EARLY_FLAG.skipChannelJoin |
  EARLY_FLAG.monitorLayout

const COLOUR_DEPTH = { sixteen: 16, twentyFour: 24 } as const
/** 24, 16, 15 and 32 bits per pixel. */
const ALL_COLOUR_DEPTHS = 0xf

export interface ClientCore {
  version: number
  width: number
  height: number
  /** Windows' identifier of a keyboard layout: 0x409 US, 0x40c French, 0x407 German, 0x40a Spanish. */
  keyboardLayout: number
  keyboardType: number
  clientBuild: number
  clientName: string
  /** Bits per pixel requested by the client. */
  colourDepth: number
  /** 0 for clients too old to send them. */
  earlyFlags: number
  /** The protocol that the client believes the server selected. Absent if the client did not send it. */
  selectedProtocol?: number
}

export interface ChannelDefinition {
  /** At most seven characters. */
  name: string
  options: number
}

export interface ClientData {
  /** All blocks, as received. */
  blocks: DataBlock[]
  core: ClientCore
  channels: ChannelDefinition[]
}

/** Keeps views of the blocks. Throws MalformedError for a client that cannot be served. */
export function parseClientData(blocks: DataBlock[]): ClientData {
  const core = findBlock(blocks, BLOCK.clientCore)
  const what = 'client core data'
  if (!core) return new ByteReader(new Uint8Array(0), what).fail('it was expected, the client has sent none')
  const network = findBlock(blocks, BLOCK.clientNetwork)
  return { blocks, core: parseCore(core), channels: network ? parseChannels(network) : [] }
}

function parseCore(body: Uint8Array): ClientCore {
  const reader = new ByteReader(body, 'client core data')
  const version = reader.uint32()
  const width = readSide(reader, 'width')
  const height = readSide(reader, 'height')
  if (DESKTOP_PIXEL_LIMIT < width * height) {
    reader.fail(
      `a desktop of at most ${DESKTOP_PIXEL_LIMIT} pixels was expected, found ${width}x${height}: ask for a smaller one`,
    )
  }
  const colourDepth = reader.uint16()
  reader.skip(2)
  const keyboardLayout = reader.uint32()
  const clientBuild = reader.uint32()
  const clientName = untilNul(utf16Text(reader.bytes(32)))
  const keyboardType = reader.uint32()
  // Skips keyboard subtype, function keys and the input method's file name.
  reader.skip(4 + 4 + 64)
  const isHigh = CORE.highColorDepth + 2 <= body.length
  const earlyFlags = uint16Of(body, CORE.earlyFlags)
  const wants32 = (earlyFlags & EARLY_FLAG.want32Bits) !== 0
  const core: ClientCore = {
    version,
    width,
    height,
    keyboardLayout,
    keyboardType,
    clientBuild,
    clientName,
    colourDepth: wants32 ? 32 : isHigh ? uint16Of(body, CORE.highColorDepth) : depthOf(colourDepth),
    earlyFlags,
  }
  if (CORE.selected + 4 <= body.length) {
    core.selectedProtocol = new ByteReader(body, 'client core data', CORE.selected).uint32()
  }
  return core
}

/** RNS_UD_COLOR_4BPP and RNS_UD_COLOR_8BPP. */
const depthOf = (code: number) => (code === 0xca00 ? 4 : 8)

function readSide(reader: ByteReader, side: string): number {
  const pixels = reader.uint16()
  if (pixels < 1 || DESKTOP_LIMIT < pixels) {
    reader.fail(`a desktop ${side} of 1 to ${DESKTOP_LIMIT} pixels was expected, found ${pixels}`)
  }
  return pixels
}

function parseChannels(body: Uint8Array): ChannelDefinition[] {
  const reader = new ByteReader(body, 'client network data')
  const count = reader.uint32()
  if (CHANNEL_LIMIT < count) {
    reader.fail(`at most ${CHANNEL_LIMIT} static virtual channels were expected, found ${count}`)
  }
  const channels: ChannelDefinition[] = []
  for (let left = count; left > 0; left--) {
    channels.push({ name: ansiText(reader.bytes(CHANNEL_NAME)), options: reader.uint32() })
  }
  return channels
}

/** Returns 0 if the block ends before the field. */
function uint16Of(body: Uint8Array, at: number): number {
  return at + 2 <= body.length ? body[at]! | (body[at + 1]! << 8) : 0
}

export interface TargetView {
  /** The protocol that the target selected: the target compares the two. */
  selectedProtocol: number
  /** The client's channels that policy allows. */
  channels: readonly ChannelDefinition[]
  /** 16 or 32: Windows resets connections with 24 bits per pixel. */
  colourDepth: 16 | 32
  /** The desktop's size, if it differs from the client's first request. */
  size?: { width: number; height: number }
}

/** Blocks sent to the target. Monitors, message channel and multitransport are not. */
const BLOCKS_FOR_TARGETS: ReadonlySet<number> = new Set([
  BLOCK.clientCore,
  BLOCK.clientCluster,
  BLOCK.clientSecurity,
])

const SECURITY_NONE = Buffer.alloc(8)
/** REDIRECTION_SUPPORTED with version 4, and no session id requested. */
const CLUSTER = Buffer.from('0d00000000000000', 'hex')

/** Returns the client's blocks for the target. */
export function buildTargetBlocks({ blocks }: ClientData, view: TargetView): DataBlock[] {
  const kept = blocks
    .filter(({ type }) => BLOCKS_FOR_TARGETS.has(type))
    .map(({ type, body }) => {
      if (type === BLOCK.clientCore) return { type, body: coreForTarget(body, view) }
      return { type, body: type === BLOCK.clientCluster ? CLUSTER : SECURITY_NONE }
    })
  if (!kept.some(({ type }) => type === BLOCK.clientSecurity)) {
    kept.push({ type: BLOCK.clientSecurity, body: SECURITY_NONE })
  }
  return [...kept, { type: BLOCK.clientNetwork, body: buildChannels(view.channels) }]
}

function coreForTarget(body: Uint8Array, view: TargetView): Uint8Array {
  // Extends the short block of an old client with zeros, so that the selected protocol fits.
  const core = Buffer.alloc(Math.max(body.length, CORE.selected + 4))
  core.set(body)
  const asked = view.size ?? { width: core.readUInt16LE(4), height: core.readUInt16LE(6) }
  const size = largeEnough(asked)
  core.writeUInt16LE(size.width, 4)
  core.writeUInt16LE(size.height, 6)
  if (CORE.scale + 4 <= core.length) {
    core.writeUInt32LE(scaleFor(size, core.readUInt32LE(CORE.scale)), CORE.scale)
  }
  const is32 = view.colourDepth === 32
  core.writeUInt16LE(is32 ? COLOUR_DEPTH.twentyFour : COLOUR_DEPTH.sixteen, CORE.highColorDepth)
  core.writeUInt16LE(ALL_COLOUR_DEPTHS, CORE.supportedColorDepths)
  const flags = core.readUInt16LE(CORE.earlyFlags) & ~HIDDEN_EARLY_FLAGS & ~EARLY_FLAG.want32Bits
  core.writeUInt16LE(flags | EARLY_FLAG.errorInfo | (is32 ? EARLY_FLAG.want32Bits : 0), CORE.earlyFlags)
  core.writeUInt32LE(view.selectedProtocol, CORE.selected)
  return core
}

/** Raises the size to DESKTOP_LEAST where it is smaller. */
export function largeEnough({ width, height }: { width: number; height: number }): {
  width: number
  height: number
} {
  return { width: Math.max(DESKTOP_LEAST.width, width), height: Math.max(DESKTOP_LEAST.height, height) }
}

/** Limits the scale, in percent, so that the desktop shows as much as DESKTOP_LEAST does at 100 %. */
export function scaleFor({ width, height }: { width: number; height: number }, asked: number): number {
  if (asked < SCALE.least || SCALE.most < asked) return SCALE.least
  const most = Math.min(width / DESKTOP_LEAST.width, height / DESKTOP_LEAST.height)
  return Math.max(SCALE.least, Math.min(asked, Math.floor(100 * most)))
}

function buildChannels(channels: readonly ChannelDefinition[]): Buffer {
  const writer = new ByteWriter().uint32(channels.length)
  for (const { name, options } of channels) writer.bytes(ansiField(name, CHANNEL_NAME)).uint32(options)
  return writer.finish()
}
