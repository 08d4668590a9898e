/** A server's data in GCC's user data (MS-RDPBCGR 2.2.1.4). */
import { Buffer } from 'node:buffer'
import { CHANNEL_LIMIT } from './client-data.ts'
import { BLOCK, buildBlocks, findBlock, parseBlocks } from './data-blocks.ts'
import { ByteReader } from './reader.ts'
import { ByteWriter } from './writer.ts'

/** RDP 5.0 to 8.1: the bastion strips the features of later versions. */
const VERSION = 0x00080004

export interface ServerData {
  /** Absent if the server does not send it; otherwise it should equal the client's request. */
  requestedProtocols?: number
  ioChannel: number
  /** Channel ids, in the order of the client's definitions. */
  channels: number[]
  /** Set only if the client requested one. */
  messageChannel?: number
}

/** Parses GCC's user data. Throws if the server requires RDP's own encryption. */
export function parseServerData(bytes: Uint8Array): ServerData {
  const blocks = parseBlocks(bytes)
  const network = new ByteReader(
    findBlock(blocks, BLOCK.serverNetwork) ?? new Uint8Array(0),
    'server network data',
  )
  const ioChannel = network.uint16()
  const count = network.uint16()
  if (CHANNEL_LIMIT < count) network.fail(`at most ${CHANNEL_LIMIT} channels were expected, found ${count}`)
  const data: ServerData = { ioChannel, channels: Array.from({ length: count }, () => network.uint16()) }
  const all = [ioChannel, ...data.channels]
  if (new Set(all).size < all.length) network.fail('channels that differ were expected, found one twice')
  const security = new ByteReader(
    findBlock(blocks, BLOCK.serverSecurity) ?? Buffer.alloc(8),
    'server security data',
  )
  security.expect('encryption method', security.uint32(), 0)
  security.expect('encryption level', security.uint32(), 0)
  const core = new ByteReader(findBlock(blocks, BLOCK.serverCore) ?? new Uint8Array(0), 'server core data')
  core.skip(4)
  if (core.remaining > 0) data.requestedProtocols = core.uint32()
  const message = findBlock(blocks, BLOCK.serverMessageChannel)
  if (message) data.messageChannel = new ByteReader(message, 'server message channel data').uint16()
  return data
}

/** Announces no encryption beyond TLS, no message channel, no multitransport and no graphics pipeline. */
export function buildServerData(data: Required<Omit<ServerData, 'messageChannel'>>): Buffer {
  const network = new ByteWriter().uint16(data.ioChannel).uint16(data.channels.length)
  for (const channel of data.channels) network.uint16(channel)
  // pads to a multiple of four bytes
  if (data.channels.length % 2 === 1) network.uint16(0)
  return buildBlocks([
    {
      type: BLOCK.serverCore,
      body: new ByteWriter().uint32(VERSION).uint32(data.requestedProtocols).uint32(0).finish(),
    },
    { type: BLOCK.serverNetwork, body: network.finish() },
    { type: BLOCK.serverSecurity, body: Buffer.alloc(8) },
  ])
}
