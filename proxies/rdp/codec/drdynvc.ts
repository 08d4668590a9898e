/** Dynamic virtual channels (MS-RDPEDYC), which go through one static channel. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../malformed.ts'
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

/** Of one dynamic channel in one direction: pieces in, messages out. */
export class DynamicAssembler {
  readonly #name: string
  readonly #limit: number
  #pieces: Buffer[] = []
  #total = 0
  #length = 0

  /** `name` of the channel, for errors; `limit`: bytes of one message. */
  constructor(name: string, limit: number) {
    this.#name = name
    this.#limit = limit
  }

  /** The message that this piece completes; undefined: more is to come. Throws MalformedError. */
  feed(message: DynamicMessage & { kind: 'data-first' | 'data' }): Uint8Array | undefined {
    if (message.kind === 'data-first') {
      if (this.#total > 0) throw this.#error('the rest of a message', 'the begin of another')
      if (this.#limit < message.length) {
        throw this.#error(`a message of at most ${this.#limit} bytes`, `${message.length}`)
      }
      this.#total = message.length
    } else if (this.#total === 0) return message.data
    this.#length += message.data.length
    if (this.#total < this.#length) throw this.#error(`a message of ${this.#total} bytes`, 'more')
    // Empty pieces are no progress, and would be kept without end.
    if (message.data.length > 0) this.#pieces.push(Buffer.from(message.data))
    if (this.#length < this.#total) return undefined
    const whole = Buffer.concat(this.#pieces, this.#length)
    this.#pieces = []
    this.#total = this.#length = 0
    return whole
  }

  #error(wanted: string, found: string): MalformedError {
    return new MalformedError(`dynamic channel ${this.#name}: ${wanted} was expected, found ${found}`)
  }
}
