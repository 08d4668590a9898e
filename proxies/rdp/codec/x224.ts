/**
 * X.224 class 0 in RDP: the connection request with its cookie, the negotiation of the security protocol
 * (MS-RDPBCGR 2.2.1.1, 2.2.1.2), and the header of data.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { latin1 } from '../../bytes/text.ts'
import { buildTpkt } from './framer.ts'
import { ByteReader } from './reader.ts'
import { ByteWriter } from './writer.ts'

const TPKT_HEADER = 4
const CODE = { request: 0xe0, confirm: 0xd0, data: 0xf0 } as const
const EOT = 0x80
const NEGOTIATION = { request: 1, response: 2, failure: 3, correlation: 6 } as const
const NEGOTIATION_LENGTH = 8
const CORRELATION_LENGTH = 36
/** LI, the length indicator, is one byte, and 255 is reserved. */
const LENGTH_INDICATOR_LIMIT = 254

/** Bits of requestedProtocols and selectedProtocol; 0 is RDP's own security. */
export const SECURITY_PROTOCOL = {
  rdp: 0,
  tls: 1,
  credssp: 2,
  rdstls: 4,
  credsspEarlyAuth: 8,
  rdsAad: 16,
} as const

export const REQUEST_FLAG = { restrictedAdmin: 1, redirectedAuthentication: 2, correlationInfo: 8 } as const

export const RESPONSE_FLAG = { extendedClientData: 1, graphicsPipeline: 2, restrictedAdmin: 8 } as const

/** MS-RDPBCGR 2.2.1.2.2. */
export const NEGOTIATION_FAILURE = {
  tlsRequired: 1,
  tlsNotAllowed: 2,
  noCertificate: 3,
  inconsistentFlags: 4,
  credsspRequired: 5,
  tlsWithUserCertificateRequired: 6,
} as const
export type NegotiationFailure = (typeof NEGOTIATION_FAILURE)[keyof typeof NEGOTIATION_FAILURE]

export interface ConnectionRequest {
  /** The first line, without CR LF: `Cookie: mstshash=NAME`, or a routing token. Not authenticated. */
  cookie?: string
  /** Absent if the client does not negotiate: it has RDP's own security only. */
  negotiation?: { flags: number; protocols: number }
}

export type ConnectionConfirm =
  /** The server does not negotiate: it has RDP's own security only. */
  | { result: 'none' }
  | { result: 'selected'; flags: number; protocol: number }
  | { result: 'failure'; code: number }

/** Reads the TPDU of a whole TPKT and checks its length indicator. `what` names it in errors. */
function readTpdu(pdu: Uint8Array, what: string, code: number): ByteReader {
  const reader = new ByteReader(pdu, what, TPKT_HEADER)
  const length = reader.uint8()
  if (length !== reader.remaining) {
    reader.fail(`a length indicator of ${reader.remaining} was expected, found ${length}`)
  }
  reader.expect('TPDU code', reader.uint8() & 0xf0, code)
  // skips both references, unused on TCP
  reader.skip(4)
  reader.expect('X.224 class', reader.uint8() & 0xf0, 0)
  return reader
}

/** Parses a whole TPKT. */
export function parseConnectionRequest(pdu: Uint8Array): ConnectionRequest {
  const reader = readTpdu(pdu, 'X.224 connection request', CODE.request)
  const request: ConnectionRequest = {}
  const rest = reader.rest()
  const cookieEnd = endOfLine(rest)
  if (cookieEnd !== undefined) request.cookie = latin1(rest.subarray(0, cookieEnd))
  const parts = new ByteReader(rest, 'X.224 connection request', cookieEnd === undefined ? 0 : cookieEnd + 2)
  if (parts.remaining === 0) return request
  parts.expect('negotiation type', parts.uint8(), NEGOTIATION.request)
  const flags = parts.uint8()
  parts.expect('negotiation length', parts.uint16(), NEGOTIATION_LENGTH)
  request.negotiation = { flags, protocols: parts.uint32() }
  if (flags & REQUEST_FLAG.correlationInfo) {
    parts.expect('correlation type', parts.uint8(), NEGOTIATION.correlation)
    parts.skip(1)
    parts.expect('correlation length', parts.uint16(), CORRELATION_LENGTH)
    parts.skip(CORRELATION_LENGTH - 4)
  }
  parts.end()
  return request
}

/** A cookie or token is text that ends in CR LF; a negotiation begins with byte 1, which no text does. */
function endOfLine(bytes: Uint8Array): number | undefined {
  if (bytes.length === 0 || bytes[0] === NEGOTIATION.request) return undefined
  for (let at = 0; at + 1 < bytes.length; at++) {
    if (bytes[at] === 0x0d && bytes[at + 1] === 0x0a) return at
  }
  throw new MalformedError('X.224 connection request: a cookie that ends in CR LF was expected, found none')
}

/** Builds a TPKT. Throws RangeError if the cookie is longer than about 230 characters. */
export function buildConnectionRequest({ cookie, negotiation }: ConnectionRequest): Buffer {
  const writer = new ByteWriter().uint8(CODE.request).zeros(5)
  if (cookie !== undefined) writer.bytes(Buffer.from(`${cookie}\r\n`, 'latin1'))
  if (negotiation) {
    writer.uint8(NEGOTIATION.request).uint8(negotiation.flags).uint16(NEGOTIATION_LENGTH)
    writer.uint32(negotiation.protocols)
  }
  return buildTpdu(writer)
}

/** Parses a whole TPKT. */
export function parseConnectionConfirm(pdu: Uint8Array): ConnectionConfirm {
  const reader = readTpdu(pdu, 'X.224 connection confirm', CODE.confirm)
  if (reader.remaining === 0) return { result: 'none' }
  const type = reader.expect('negotiation type', reader.uint8(), NEGOTIATION.response, NEGOTIATION.failure)
  const flags = reader.uint8()
  reader.expect('negotiation length', reader.uint16(), NEGOTIATION_LENGTH)
  const value = reader.uint32()
  reader.end()
  return type === NEGOTIATION.failure
    ? { result: 'failure', code: value }
    : { result: 'selected', flags, protocol: value }
}

/** Builds a TPKT. */
export function buildConnectionConfirm(confirm: ConnectionConfirm): Buffer {
  // the source reference is any number but 0
  const writer = new ByteWriter().uint8(CODE.confirm).uint16be(0).uint16be(0x1234).uint8(0)
  if (confirm.result === 'selected') {
    writer
      .uint8(NEGOTIATION.response)
      .uint8(confirm.flags)
      .uint16(NEGOTIATION_LENGTH)
      .uint32(confirm.protocol)
  } else if (confirm.result === 'failure') {
    writer.uint8(NEGOTIATION.failure).uint8(0).uint16(NEGOTIATION_LENGTH).uint32(confirm.code)
  }
  return buildTpdu(writer)
}

function buildTpdu(tpdu: ByteWriter): Buffer {
  const bytes = tpdu.finish()
  if (LENGTH_INDICATOR_LIMIT < bytes.length) {
    throw new RangeError(
      `an X.224 connection TPDU has at most ${LENGTH_INDICATOR_LIMIT} bytes, not ${bytes.length}`,
    )
  }
  return buildTpkt(Uint8Array.of(bytes.length), bytes)
}

/** Returns the payload of a data TPDU, a view of its TPKT. */
export function parseData(pdu: Uint8Array): Uint8Array {
  const reader = new ByteReader(pdu, 'X.224 data', TPKT_HEADER)
  reader.expect('length indicator', reader.uint8(), 2)
  reader.expect('TPDU code', reader.uint8(), CODE.data)
  reader.expect('end-of-TSDU mark', reader.uint8(), EOT)
  return reader.rest()
}

const DATA_HEADER = Uint8Array.of(2, CODE.data, EOT)

/** Builds a TPKT and data TPDU around the parts of an MCS message. */
export function buildData(...parts: Uint8Array[]): Buffer {
  return buildTpkt(DATA_HEADER, ...parts)
}
