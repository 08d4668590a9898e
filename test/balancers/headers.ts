/** Makes PROXY headers of version 2, valid or not. */
import { crc32c } from '../../src/balancers/crc32c.ts'

export const FAMILIES = { tcp4: 0x11, tcp6: 0x21, unix: 0x31 }
const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const CHECKSUM = 0x03

export interface Block {
  version?: number
  /** 0: the balancer's own connection. */
  command?: number
  /** Family and transport. */
  family: number
  addresses?: Buffer
  fields?: Buffer[]
}

export function blockHeader({ version = 2, command = 1, family, addresses, fields = [] }: Block): Buffer {
  const rest = Buffer.concat([addresses ?? Buffer.alloc(0), ...fields])
  const fixed = Buffer.from([(version << 4) | command, family, rest.length >> 8, rest.length & 0xff])
  return Buffer.concat([SIGNATURE, fixed, rest])
}

export function field(type: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([type, bytes.length >> 8, bytes.length & 0xff]), bytes])
}

/** The checksum comes last. */
export function withChecksum(block: Block): Buffer {
  const header = blockHeader({
    ...block,
    fields: [...(block.fields ?? []), field(CHECKSUM, Buffer.alloc(4))],
  })
  header.writeUInt32BE(crc32c(header), header.length - 4)
  return header
}
