/** Dynamic virtual channels (MS-RDPEDYC), which go through one static channel. */
import { Buffer } from 'node:buffer'
import { ByteReader } from './reader.ts'
import { ansiText } from './utf16.ts'
import { ByteWriter } from './writer.ts'

/** Name of the static channel. */
export const DRDYNVC = 'drdynvc'
/** Bytes of one PDU: MS-RDPEDYC 3.1.5.1 has 1600. */
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

/** Of versions 1 and 2; version 3 compresses. */
const HIGHEST_VERSION = 2
const ACCESS_DENIED = 0x80070005

export type DynamicMessage =
  | { kind: 'capabilities'; version: number }
  /** The server opens a channel. */
  | { kind: 'create'; channel: number; name: string }
  /** The client's answer; a status under 0x80000000 is a success. */
  | { kind: 'created'; channel: number; status: number }
  /** The begin of a message of so many bytes, which goes on in `data`. */
  | { kind: 'data-first'; channel: number; length: number; data: Uint8Array }
  | { kind: 'data'; channel: number; data: Uint8Array }
  | { kind: 'close'; channel: number }

/** Of a whole PDU. Compressed data and changes of transport are malformed: `limitVersion` has them given up. */
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

/** One, two or four bytes. */
function readNumber(reader: ByteReader, width: number): number {
  if (width === 0) return reader.uint8()
  return width === 1 ? reader.uint16() : reader.uint32()
}

/** A message of kind `capabilities` that goes no further than what `parseDynamic` reads. */
export function limitVersion(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUInt16LE(Math.min(copy.readUInt16LE(2), HIGHEST_VERSION), 2)
  return copy
}

/** As the client would refuse a channel that the server opens. */
export function buildDynamicRefusal(channel: number): Buffer {
  return new ByteWriter(9)
    .uint8((DYNAMIC_COMMAND.create << 4) | 2)
    .uint32(channel)
    .uint32(ACCESS_DENIED)
    .finish()
}

/** Of either side. */
export function buildDynamicClose(channel: number): Buffer {
  return new ByteWriter(5)
    .uint8((DYNAMIC_COMMAND.close << 4) | 2)
    .uint32(channel)
    .finish()
}
