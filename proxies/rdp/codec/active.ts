/** Demand Active and Confirm Active (MS-RDPBCGR 2.2.1.13): the exchange of capability sets. */
import { Buffer } from 'node:buffer'
import { SERVER_USER } from './mcs.ts'
import { ByteReader } from './reader.ts'
import { buildShare, CONTROL_PDU } from './share.ts'
import { ByteWriter } from './writer.ts'

/** The specification defines thirty types. */
export const CAPABILITY_LIMIT = 64
const SET_HEADER = 4
/** originatorId: the server's user. */
const ORIGINATOR = SERVER_USER
const SOURCE = Buffer.from('RDP\0')

export interface Capability {
  /** One of CAPABILITY, or an unknown type. */
  type: number
  /** Without the header. */
  body: Uint8Array
}

export interface ActivePdu {
  shareId: number
  capabilities: Capability[]
}

/** Parses the bytes after the share control header. Bodies are views. */
export function parseDemandActive(body: Uint8Array): ActivePdu {
  const reader = new ByteReader(body, 'demand active')
  const shareId = reader.uint32()
  // Skips sessionId, which is always 0 and which old servers omit.
  return { shareId, capabilities: readSets(reader) }
}

/** Parses the bytes after the share control header. Bodies are views. */
export function parseConfirmActive(body: Uint8Array): ActivePdu {
  const reader = new ByteReader(body, 'confirm active')
  const shareId = reader.uint32()
  reader.expect('originator', reader.uint16(), ORIGINATOR)
  return { shareId, capabilities: readSets(reader) }
}

function readSets(reader: ByteReader): Capability[] {
  const sourceLength = reader.uint16()
  const length = reader.uint16()
  reader.skip(sourceLength)
  if (length < SET_HEADER || reader.remaining < length) {
    reader.fail(
      `capability sets of ${SET_HEADER} to ${reader.remaining} bytes were expected, found ${length}`,
    )
  }
  const count = reader.uint16()
  reader.skip(2)
  if (CAPABILITY_LIMIT < count) {
    reader.fail(`at most ${CAPABILITY_LIMIT} capability sets were expected, found ${count}`)
  }
  const types = new Set<number>()
  return Array.from({ length: count }, () => {
    const type = reader.uint16()
    // Rejects duplicates: peers that use the first or the last would differ in the desktop's size.
    if (types.has(type))
      reader.fail(`capability sets of different types were expected, found type ${type} twice`)
    types.add(type)
    const setLength = reader.uint16()
    if (setLength < SET_HEADER) {
      reader.fail(`a capability set of at least ${SET_HEADER} bytes was expected, found ${setLength}`)
    }
    return { type, body: reader.bytes(setLength - SET_HEADER) }
  })
}

/** Returns a share PDU sent by the server. */
export function buildDemandActive({ shareId, capabilities }: ActivePdu): Buffer {
  const sets = buildSets(capabilities)
  const body = new ByteWriter(sets.length + 32)
    .uint32(shareId)
    .uint16(SOURCE.length)
    .uint16(sets.length)
    .bytes(SOURCE)
    .bytes(sets)
    .uint32(0)
    .finish()
  return buildShare(CONTROL_PDU.demandActive, SERVER_USER, body)
}

/** Returns a share PDU sent by the client with this user id. */
export function buildConfirmActive({ shareId, capabilities }: ActivePdu, user: number): Buffer {
  const sets = buildSets(capabilities)
  const body = new ByteWriter(sets.length + 32)
    .uint32(shareId)
    .uint16(ORIGINATOR)
    .uint16(SOURCE.length)
    .uint16(sets.length)
    .bytes(SOURCE)
    .bytes(sets)
    .finish()
  return buildShare(CONTROL_PDU.confirmActive, user, body)
}

function buildSets(capabilities: readonly Capability[]): Buffer {
  const writer = new ByteWriter(512).uint16(capabilities.length).uint16(0)
  for (const { type, body } of capabilities)
    writer
      .uint16(type)
      .uint16(body.length + SET_HEADER)
      .bytes(body)
  return writer.finish()
}
