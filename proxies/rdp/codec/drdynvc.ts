/** Dynamic virtual channels (MS-RDPEDYC), carried in one static channel. */
import { Buffer } from 'node:buffer'
import { ByteReader } from './reader.ts'
import { ansiText } from './utf16.ts'
import { ByteWriter } from './writer.ts'

/** Name of the static channel. */
export const DRDYNVC = 'drdynvc'
/** Bytes of one PDU; MS-RDPEDYC 3.1.5.1 has 1600. */
export const DYNAMIC_PDU_LIMIT = 16_256
const NAME_LIMIT = 256

export const DYNAMIC_COMMAND = {
  create: 1,
  dataFirst: 2,
  data: 3,
  close: 4,
  capabilities: 5,
  dataFirstCompressed: 6,
  dataCompressed: 7,
  softSyncRequest: 8,
  softSyncResponse: 9,
} as const

/** Versions 1 and 2 are supported; version 3 adds compression. */
const HIGHEST_VERSION = 2
const ACCESS_DENIED = 0x80070005

export type DynamicMessage =
  | { kind: 'capabilities'; version: number }
  /** Sent by the server: opens a channel. */
  | { kind: 'create'; channel: number; name: string }
  /** The client's response; a status under 0x80000000 means success. */
  | { kind: 'created'; channel: number; status: number }
  /** First fragment of a message of `length` bytes. */
  | { kind: 'data-first'; channel: number; length: number; data: Uint8Array }
  | { kind: 'data'; channel: number; data: Uint8Array }
  | { kind: 'close'; channel: number }

/** Parses a whole PDU. Rejects compression and changes of transport, which `limitVersion` disables. */
export function parseDynamic(bytes: Uint8Array, from: 'client' | 'server'): DynamicMessage {
  const reader = new ByteReader(bytes, 'dynamic channel')
  if (DYNAMIC_PDU_LIMIT < bytes.length) {
    reader.fail(`a PDU of at most ${DYNAMIC_PDU_LIMIT} bytes was expected, found ${bytes.length}`)
  }
  const head = reader.uint8()
  const command = head >> 4
  if (command === DYNAMIC_COMMAND.capabilities) {
    reader.skip(1)
    return { kind: 'capabilities', version: reader.uint16() }
  }
  const width = head & 3
  const lengthWidth = (head >> 2) & 3
  switch (command) {
    case DYNAMIC_COMMAND.create: {
      const channel = readNumber(reader, width)
      if (from === 'client') return { kind: 'created', channel, status: reader.uint32() }
      if (NAME_LIMIT < reader.remaining) reader.fail(`a name of at most ${NAME_LIMIT} bytes was expected`)
      return { kind: 'create', channel, name: ansiText(reader.rest()) }
    }
    case DYNAMIC_COMMAND.dataFirst: {
      const channel = readNumber(reader, width)
      return { kind: 'data-first', channel, length: readNumber(reader, lengthWidth), data: reader.rest() }
    }
    case DYNAMIC_COMMAND.data:
      return { kind: 'data', channel: readNumber(reader, width), data: reader.rest() }
    case DYNAMIC_COMMAND.close:
      return { kind: 'close', channel: readNumber(reader, width) }
    default:
      return reader.fail(`a command of 1 to 5 was expected, found ${command}`)
  }
}

/** Reads a number of one, two or four bytes. */
function readNumber(reader: ByteReader, width: number): number {
  if (width === 0) return reader.uint8()
  return width === 1 ? reader.uint16() : reader.uint32()
}

/** Returns a `capabilities` message, limited to the versions that `parseDynamic` supports. */
export function limitVersion(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUInt16LE(Math.min(copy.readUInt16LE(2), HIGHEST_VERSION), 2)
  return copy
}

/** Builds the client's refusal of a channel that the server opens. */
export function buildDynamicRefusal(channel: number): Buffer {
  return new ByteWriter(9)
    .uint8((DYNAMIC_COMMAND.create << 4) | 2)
    .uint32(channel)
    .uint32(ACCESS_DENIED)
    .finish()
}

/** Builds a close PDU, valid in both directions. */
export function buildDynamicClose(channel: number): Buffer {
  return new ByteWriter(5)
    .uint8((DYNAMIC_COMMAND.close << 4) | 2)
    .uint32(channel)
    .finish()
}
