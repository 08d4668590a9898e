/**
 * The messages of the connection layer (RFC 4254): numbers, parsers and, for the hot path, accessors that
 * allocate nothing. A payload begins with the message's number, as it comes out of the transport (RFC 4253
 * section 6). Parsers throw MalformedError; byte strings they return are views into the payload. The payloads
 * of channel requests are in requests.ts, the builders in build.ts.
 */

import { MalformedError } from '../../bytes/malformed.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { Reader } from './reader.ts'
import { setUint32At } from './writer.ts'

/** RFC 4254 section 9, RFC 4250 section 4.1.2. */
export const MSG = {
  globalRequest: 80,
  requestSuccess: 81,
  requestFailure: 82,
  channelOpen: 90,
  channelOpenConfirmation: 91,
  channelOpenFailure: 92,
  channelWindowAdjust: 93,
  channelData: 94,
  channelExtendedData: 95,
  channelEof: 96,
  channelClose: 97,
  channelRequest: 98,
  channelSuccess: 99,
  channelFailure: 100,
} as const
export type Msg = (typeof MSG)[keyof typeof MSG]

/** RFC 4254 section 5.1. */
export const OPEN_FAILURE = {
  administrativelyProhibited: 1,
  connectFailed: 2,
  unknownChannelType: 3,
  resourceShortage: 4,
} as const
export type OpenFailureReason = (typeof OPEN_FAILURE)[keyof typeof OPEN_FAILURE]

/** RFC 4254 section 5.2: the only defined type of extended data. */
export const EXTENDED_DATA_STDERR = 1

export interface GlobalRequest {
  name: string
  wantReply: boolean
  data: Uint8Array
}

/** byte 80, string request name, boolean want reply, request-specific data (RFC 4254 section 4). */
export function parseGlobalRequest(payload: Uint8Array): GlobalRequest {
  const reader = reading(payload, MSG.globalRequest, 'GLOBAL_REQUEST')
  return { name: reader.name(), wantReply: reader.boolean(), data: reader.rest() }
}

export interface ChannelOpen {
  type: string
  sender: number
  window: number
  maxPacket: number
  typeData: Uint8Array
}

/** byte 90, string channel type, uint32 sender, uint32 initial window, uint32 maximum packet, data (5.1). */
export function parseChannelOpen(payload: Uint8Array): ChannelOpen {
  const reader = reading(payload, MSG.channelOpen, 'CHANNEL_OPEN')
  return {
    type: reader.name(),
    sender: reader.uint32(),
    window: reader.uint32(),
    maxPacket: maxPacketOf(reader),
    typeData: reader.rest(),
  }
}

/**
 * Data for a peer is cut into messages of its maximum size: a size of 0 would never end, and a few bytes
 * would make millions of messages of one window. Clients and servers name 4 KiB and more.
 */
export const MIN_CHANNEL_PACKET = 256

function maxPacketOf(reader: Reader): number {
  const size = reader.uint32()
  if (size < MIN_CHANNEL_PACKET)
    throw new MalformedError(
      `a maximum packet size of at least ${MIN_CHANNEL_PACKET} was expected, found ${size}`,
    )
  return size
}

export interface ChannelOpenConfirmation {
  recipient: number
  sender: number
  window: number
  maxPacket: number
  typeData: Uint8Array
}

/** byte 91, uint32 recipient, uint32 sender, uint32 initial window, uint32 maximum packet, data (5.1). */
export function parseChannelOpenConfirmation(payload: Uint8Array): ChannelOpenConfirmation {
  const reader = reading(payload, MSG.channelOpenConfirmation, 'CHANNEL_OPEN_CONFIRMATION')
  return {
    recipient: reader.uint32(),
    sender: reader.uint32(),
    window: reader.uint32(),
    maxPacket: maxPacketOf(reader),
    typeData: reader.rest(),
  }
}

export interface ChannelOpenFailure {
  recipient: number
  reason: number
  description: Uint8Array
}

/** byte 92, uint32 recipient, uint32 reason, string description (UTF-8), string language tag (5.1). */
export function parseChannelOpenFailure(payload: Uint8Array): ChannelOpenFailure {
  const reader = reading(payload, MSG.channelOpenFailure, 'CHANNEL_OPEN_FAILURE')
  const failure = { recipient: reader.uint32(), reason: reader.uint32(), description: reader.string() }
  reader.string()
  reader.end()
  return failure
}

export interface ChannelRequest {
  recipient: number
  /** The exact bytes, one character each: for comparison, not for display. */
  type: string
  wantReply: boolean
  data: Uint8Array
}

/** byte 98, uint32 recipient, string request type, boolean want reply, type-specific data (5.4). */
export function parseChannelRequest(payload: Uint8Array): ChannelRequest {
  const reader = reading(payload, MSG.channelRequest, 'CHANNEL_REQUEST')
  return {
    recipient: reader.uint32(),
    type: reader.name(),
    wantReply: reader.boolean(),
    data: reader.rest(),
  }
}

/** The recipient channel of any message from 91 to 100: the uint32 after the number. */
export function recipientOf(payload: Uint8Array): number {
  if (payload.length < 5) throw short(payload, 5)
  return uint32At(payload, 1)
}

/** Overwrites the recipient channel of any message from 91 to 100. */
export function setRecipient(payload: Uint8Array, channel: number): void {
  if (payload.length < 5) throw short(payload, 5)
  setUint32At(payload, 1, channel)
}

/** Returns the bytes to add of byte 93, uint32 recipient, uint32 bytes to add (5.2). */
export function windowAdjustOf(payload: Uint8Array): number {
  if (payload.length !== 9) throw short(payload, 9)
  return uint32At(payload, 5)
}

/** Returns a view of the data of byte 94, uint32 recipient, string data (5.2). */
export function dataOf(payload: Uint8Array): Uint8Array {
  return stringAtEnd(payload, 5)
}

/** Sets the data's length in byte 94, uint32 recipient, string data (5.2) to all bytes that follow. */
export function setDataLength(payload: Uint8Array): void {
  if (payload.length < 9) throw short(payload, 9)
  setUint32At(payload, 5, payload.length - 9)
}

/** Returns a view of the data of byte 95, uint32 recipient, uint32 data type, string data (5.2). */
export function extendedDataOf(payload: Uint8Array): Uint8Array {
  return stringAtEnd(payload, 9)
}

function stringAtEnd(payload: Uint8Array, offset: number): Uint8Array {
  if (payload.length < offset + 4) throw short(payload, offset + 4)
  const length = uint32At(payload, offset)
  if (payload.length !== offset + 4 + length) throw short(payload, offset + 4 + length)
  return payload.subarray(offset + 4)
}

function short(payload: Uint8Array, expected: number): MalformedError {
  return new MalformedError(`message ${payload[0]}: ${expected} bytes were expected, found ${payload.length}`)
}

function reading(payload: Uint8Array, number: Msg, name: string): Reader {
  if (payload[0] !== number) {
    throw new MalformedError(`${name}: message number ${number} was expected, found ${payload[0]}`)
  }
  return new Reader(payload, name, 1)
}
