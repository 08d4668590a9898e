/** Data blocks of GCC's user data (MS-RDPBCGR 2.2.1.3.1), each with a type and a length. */
import type { Buffer } from 'node:buffer'
import { ByteReader } from './reader.ts'
import { ByteWriter } from './writer.ts'

const HEADER = 4
/** Blocks per side: the specification has ten types. */
export const BLOCK_LIMIT = 32

/** CS_: sent by the client; SC_: sent by the server. */
export const BLOCK = {
  clientCore: 0xc001,
  clientSecurity: 0xc002,
  clientNetwork: 0xc003,
  clientCluster: 0xc004,
  clientMonitor: 0xc005,
  clientMessageChannel: 0xc006,
  clientMonitorEx: 0xc008,
  clientMultitransport: 0xc00a,
  serverCore: 0x0c01,
  serverSecurity: 0x0c02,
  serverNetwork: 0x0c03,
  serverMessageChannel: 0x0c04,
  serverMultitransport: 0x0c08,
} as const

export interface DataBlock {
  type: number
  /** The data after the header. */
  body: Uint8Array
}

/** Returns the blocks; their bodies are views. */
export function parseBlocks(bytes: Uint8Array): DataBlock[] {
  const reader = new ByteReader(bytes, 'GCC user data')
  const blocks: DataBlock[] = []
  while (reader.remaining > 0) {
    if (blocks.length === BLOCK_LIMIT) reader.fail(`at most ${BLOCK_LIMIT} data blocks were expected`)
    const type = reader.uint16()
    const length = reader.uint16()
    if (length < HEADER) reader.fail(`a data block of at least ${HEADER} bytes was expected, found ${length}`)
    if (blocks.some((block) => block.type === type)) {
      reader.fail(`one data block of type 0x${type.toString(16)} was expected, found two`)
    }
    blocks.push({ type, body: reader.bytes(length - HEADER) })
  }
  return blocks
}

export function buildBlocks(blocks: readonly DataBlock[]): Buffer {
  const writer = new ByteWriter(512)
  for (const { type, body } of blocks)
    writer
      .uint16(type)
      .uint16(body.length + HEADER)
      .bytes(body)
  return writer.finish()
}

export function findBlock(blocks: readonly DataBlock[], type: number): Uint8Array | undefined {
  return blocks.find((block) => block.type === type)?.body
}
