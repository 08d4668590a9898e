/**
 * Headers of the PDUs on the I/O channel after licensing (MS-RDPBCGR 2.2.8.1.1.1): share control, and share
 * data inside it.
 */
import type { Buffer } from 'node:buffer'
import { SERVER_USER } from './mcs.ts'
import { ByteReader } from './reader.ts'
import { ByteWriter } from './writer.ts'

const CONTROL_HEADER = 6
const DATA_HEADER = 12
const VERSION = 0x10
/** In place of a length it marks a flow control PDU of T.128, which RDP ignores. */
const FLOW_MARK = 0x8000
const FLOW_PDU = 8

/** Low four bits of pduType. */
export const CONTROL_PDU = {
  demandActive: 1,
  confirmActive: 3,
  deactivateAll: 6,
  data: 7,
  serverRedirection: 10,
} as const

/** pduType2 of share data. */
export const DATA_PDU = {
  update: 0x02,
  control: 0x14,
  pointer: 0x1b,
  input: 0x1c,
  synchronize: 0x1f,
  refreshRectangle: 0x21,
  playSound: 0x22,
  suppressOutput: 0x23,
  shutdownRequest: 0x24,
  shutdownDenied: 0x25,
  saveSessionInfo: 0x26,
  fontList: 0x27,
  fontMap: 0x28,
  keyboardIndicators: 0x29,
  persistentKeyList: 0x2b,
  keyboardImeStatus: 0x2d,
  setErrorInfo: 0x2f,
  arcStatus: 0x32,
  statusInfo: 0x36,
  monitorLayout: 0x37,
} as const

/** streamId of the client and of the server: low and medium priority. */
const STREAM = { client: 1, server: 2 } as const
const COMPRESSED = 0x20
/** uncompressedLength is the body and these header bytes, from pduType2 on. */
const COUNTED = 4

export interface SharePdu {
  /** One of CONTROL_PDU, or an unknown type. */
  type: number
  /** User id of the sender. */
  source: number
  /** The bytes after the share control header. */
  body: Uint8Array
  /** The PDU with its header. */
  whole: Uint8Array
}

/** Returns views of all PDUs in one Send Data. Skips flow control PDUs. */
export function parseShare(data: Uint8Array): SharePdu[] {
  const pdus: SharePdu[] = []
  let rest = data
  while (rest.length > 0) {
    const reader = new ByteReader(rest, 'share control')
    const length = reader.uint16()
    if (length === FLOW_MARK) {
      rest = rest.subarray(Math.min(FLOW_PDU, rest.length))
      continue
    }
    // Old servers omit the source of a Deactivate All.
    if (length < 4 || rest.length < length) {
      reader.fail(`a length of 4 to ${rest.length} bytes was expected, found ${length}`)
    }
    const type = reader.uint16() & 0xf
    const hasSource = CONTROL_HEADER <= length
    const source = hasSource ? reader.uint16() : 0
    const whole = rest.subarray(0, length)
    pdus.push({ type, source, body: whole.subarray(hasSource ? CONTROL_HEADER : 4), whole })
    rest = rest.subarray(length)
  }
  return pdus
}

export function buildShare(type: number, source: number, body: Uint8Array): Buffer {
  return new ByteWriter(CONTROL_HEADER + body.length)
    .uint16(CONTROL_HEADER + body.length)
    .uint16(type | VERSION)
    .uint16(source)
    .bytes(body)
    .finish()
}

export interface ShareData {
  shareId: number
  /** One of DATA_PDU, or an unknown type. */
  type: number
  body: Uint8Array
}

/** Parses a SharePdu of type data. Throws if it is compressed: the bastion announces no compression. */
export function parseShareData(pdu: SharePdu): ShareData {
  const reader = new ByteReader(pdu.body, 'share data')
  const shareId = reader.uint32()
  reader.skip(2)
  // Skips uncompressedLength, which peers count in different ways.
  reader.skip(2)
  const type = reader.uint8()
  const compression = reader.uint8()
  if (compression & COMPRESSED) {
    reader.fail(`data that is not compressed was expected, found flags 0x${compression.toString(16)}`)
  }
  reader.skip(2)
  return { shareId, type, body: reader.rest() }
}

/** Builds share data with both headers. `source` is the sender's user id, or SERVER_USER. */
export function buildShareData(data: ShareData, source: number = SERVER_USER): Buffer {
  const body = new ByteWriter(DATA_HEADER + data.body.length)
    .uint32(data.shareId)
    .uint8(0)
    .uint8(source === SERVER_USER ? STREAM.server : STREAM.client)
    .uint16(COUNTED + data.body.length)
    .uint8(data.type)
    .uint8(0)
    .uint16(0)
    .bytes(data.body)
    .finish()
  return buildShare(CONTROL_PDU.data, source, body)
}

/** Builds 13 bytes: share control header (6), shareId (4), length of the source descriptor (2), its one byte. */
export function buildDeactivateAll(shareId: number): Buffer {
  const body = new ByteWriter(7).uint32(shareId).uint16(1).uint8(0).finish()
  return buildShare(CONTROL_PDU.deactivateAll, SERVER_USER, body)
}
