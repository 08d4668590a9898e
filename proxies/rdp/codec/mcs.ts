/** Messages of an MCS domain (T.125 sections 11.3 to 11.33) as used by RDP, in PER, each in its own TPKT. */
import type { Buffer } from 'node:buffer'
import { buildPerLength, PER_LENGTH_LIMIT, readPerLength } from './per.ts'
import { ByteReader } from './reader.ts'
import { buildData, parseData } from './x224.ts'

/** User ids are encoded as their difference from this. */
const USER_BASE = 1001
/** The server's own user id, in everything that it sends. */
export const SERVER_USER = 1002
/** Bytes that one Send Data can carry. */
export const MCS_DATA_LIMIT = PER_LENGTH_LIMIT

const CHOICE = {
  erectDomain: 1,
  disconnect: 8,
  attachRequest: 10,
  attachConfirm: 11,
  joinRequest: 14,
  joinConfirm: 15,
  dataRequest: 25,
  dataIndication: 26,
} as const

export const MCS_RESULT = { successful: 0, noSuchChannel: 3 } as const

/** Reasons of a Disconnect Provider Ultimatum. */
export const DISCONNECT_REASON = {
  domainDisconnected: 0,
  providerInitiated: 1,
  tokenPurged: 2,
  userRequested: 3,
  channelPurged: 4,
} as const

export type McsMessage =
  | { kind: 'erect-domain' }
  | { kind: 'disconnect'; reason: number }
  | { kind: 'attach-request' }
  | { kind: 'attach-confirm'; result: number; user: number }
  | { kind: 'join-request'; user: number; channel: number }
  | { kind: 'join-confirm'; result: number; user: number; channel: number }
  /** `data-request` is sent by the client, `data-indication` by the server. `data` is a view. */
  | { kind: 'data-request' | 'data-indication'; user: number; channel: number; data: Uint8Array }

/** Begin and end, bits 4 and 5: RDP sends everything in one segment. */
const SEGMENTATION = 0x30
/** High priority, begin and end. */
const PRIORITY_AND_SEGMENTATION = 0x70

/** Parses a whole TPKT. */
export function parseMcs(pdu: Uint8Array): McsMessage {
  const reader = new ByteReader(parseData(pdu), 'MCS')
  const head = reader.uint8()
  const message = readMessage(reader, head)
  reader.end()
  return message
}

function readMessage(reader: ByteReader, head: number): McsMessage {
  switch (head >> 2) {
    case CHOICE.dataRequest:
      return readSendData(reader, 'data-request')
    case CHOICE.dataIndication:
      return readSendData(reader, 'data-indication')
    case CHOICE.erectDomain:
      // two numbers that RDP does not use, and that rdesktop encodes in its own way
      reader.rest()
      return { kind: 'erect-domain' }
    case CHOICE.disconnect:
      // three bits, the first two in the byte of the choice
      return { kind: 'disconnect', reason: ((head & 3) << 1) | (reader.uint8() >> 7) }
    case CHOICE.attachRequest:
      return { kind: 'attach-request' }
    case CHOICE.attachConfirm: {
      const result = readResult(reader, head)
      return { kind: 'attach-confirm', result, user: head & 2 ? readUser(reader) : 0 }
    }
    case CHOICE.joinRequest:
      return { kind: 'join-request', user: readUser(reader), channel: reader.uint16be() }
    case CHOICE.joinConfirm: {
      const result = readResult(reader, head)
      const user = readUser(reader)
      const requested = reader.uint16be()
      return { kind: 'join-confirm', result, user, channel: head & 2 ? reader.uint16be() : requested }
    }
    default:
      return reader.fail(`a message that RDP has was expected, found choice ${head >> 2}`)
  }
}

function readSendData(reader: ByteReader, kind: 'data-request' | 'data-indication'): McsMessage {
  const user = readUser(reader)
  const channel = reader.uint16be()
  const flags = reader.uint8()
  if ((flags & SEGMENTATION) !== SEGMENTATION) {
    reader.fail(`data in one segment was expected, found flags 0x${flags.toString(16)}`)
  }
  return { kind, user, channel, data: reader.bytes(readPerLength(reader)) }
}

function readUser(reader: ByteReader): number {
  return reader.uint16be() + USER_BASE
}

/** Reads four bits: the first byte's last and the second byte's first three. All values are valid. */
function readResult(reader: ByteReader, head: number): number {
  return ((head & 1) << 3) | (reader.uint8() >> 5)
}

const user16 = (user: number) => [(user - USER_BASE) >> 8, (user - USER_BASE) & 0xff]
const channel16 = (channel: number) => [channel >> 8, channel & 0xff]
const message = (...bytes: number[]) => buildData(Uint8Array.from(bytes))
const resultBytes = (choice: number, result: number, isOptionalThere: boolean) => [
  (choice << 2) | (isOptionalThere ? 2 : 0) | (result >> 3),
  (result & 7) << 5,
]

export const buildErectDomain = (): Buffer => message(CHOICE.erectDomain << 2, 1, 0, 1, 0)

export const buildAttachRequest = (): Buffer => message(CHOICE.attachRequest << 2)

/** Includes the user only if the result is successful. */
export function buildAttachConfirm(result: number, user: number): Buffer {
  const isDone = result === MCS_RESULT.successful
  return message(...resultBytes(CHOICE.attachConfirm, result, isDone), ...(isDone ? user16(user) : []))
}

export function buildJoinRequest(user: number, channel: number): Buffer {
  return message(CHOICE.joinRequest << 2, ...user16(user), ...channel16(channel))
}

export function buildJoinConfirm(result: number, user: number, channel: number): Buffer {
  const isDone = result === MCS_RESULT.successful
  return message(
    ...resultBytes(CHOICE.joinConfirm, result, isDone),
    ...user16(user),
    ...channel16(channel),
    ...(isDone ? channel16(channel) : []),
  )
}

export function buildDisconnect(reason: number): Buffer {
  return message((CHOICE.disconnect << 2) | (reason >> 1), (reason & 1) << 7)
}

/** Builds data from the client to the server. Throws RangeError over MCS_DATA_LIMIT. */
export function buildDataRequest(user: number, channel: number, data: Uint8Array): Buffer {
  return buildSendData(CHOICE.dataRequest, user, channel, data)
}

/** Builds data from the server to the client. Throws RangeError over MCS_DATA_LIMIT. */
export function buildDataIndication(channel: number, data: Uint8Array): Buffer {
  return buildSendData(CHOICE.dataIndication, SERVER_USER, channel, data)
}

function buildSendData(choice: number, user: number, channel: number, data: Uint8Array): Buffer {
  const head = [choice << 2, ...user16(user), ...channel16(channel), PRIORITY_AND_SEGMENTATION]
  return buildData(Uint8Array.from(head), buildPerLength(data.length), data)
}
