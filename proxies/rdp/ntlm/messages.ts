/** NTLM's three messages (MS-NLMP 2.2.1), read and written. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { utf16Bytes, utf16Text } from '../codec/utf16.ts'
import { FLAG } from './numbers.ts'

/** Bytes of a message: Windows sends some hundreds. */
export const NTLM_MESSAGE_LIMIT = 16 * 1024

const SIGNATURE = Buffer.from('NTLMSSP\0', 'latin1')
const TYPE = { NEGOTIATE: 1, CHALLENGE: 2, AUTHENTICATE: 3 } as const
/** Windows 10 1803, revision 15: the version is for debugging only (2.2.2.10). */
const VERSION = Buffer.from([10, 0, 0xee, 0x42, 0, 0, 0, 15])

const NEGOTIATE_LENGTH = 40
const CHALLENGE_HEAD = 56
/** Without a version and a MIC, as the oldest clients send it. */
const AUTHENTICATE_HEAD_LEAST = 64
const AUTHENTICATE_HEAD = 88
export const MIC_OFFSET = 72
export const MIC_LENGTH = 16
const CHALLENGE_LENGTH = 8

export interface Challenge {
  flags: number
  serverChallenge: Uint8Array
  /** AV_PAIRs; empty if the server has sent none. */
  targetInfo: Uint8Array
}

export interface Authenticate {
  flags: number
  user: string
  domain: string
  workstation: string
  /** The NTLMv2 response (2.2.2.8), or the 24 bytes of an older one. */
  ntResponse: Uint8Array
  encryptedSessionKey: Uint8Array
  /** Absent if the message has no room for a MIC before its first field. */
  mic: Uint8Array | undefined
}

/** Returns the client's flags. Throws MalformedError. */
export function parseNegotiate(bytes: Uint8Array): number {
  return view(bytes, TYPE.NEGOTIATE, 16, 'NEGOTIATE').readUInt32LE(12)
}

export function buildNegotiate(flags: number): Buffer {
  const message = Buffer.alloc(NEGOTIATE_LENGTH)
  writeHead(message, TYPE.NEGOTIATE)
  message.writeUInt32LE(flags, 12)
  VERSION.copy(message, 32)
  return message
}

/** Throws MalformedError. */
export function parseChallenge(bytes: Uint8Array): Challenge {
  const what = 'CHALLENGE'
  const message = view(bytes, TYPE.CHALLENGE, 32, what)
  const flags = message.readUInt32LE(20)
  const hasInfo = (flags & FLAG.TARGET_INFO) !== 0 && 48 <= message.length
  return {
    flags,
    serverChallenge: message.subarray(24, 24 + CHALLENGE_LENGTH),
    targetInfo: hasInfo ? field(message, 40, what) : Buffer.alloc(0),
  }
}

/** `targetName`: the server's name, of the kind that the flags announce. */
export function buildChallenge(challenge: Challenge, targetName: string): Buffer {
  const name = utf16Bytes(targetName)
  const head = Buffer.alloc(CHALLENGE_HEAD)
  writeHead(head, TYPE.CHALLENGE)
  writeField(head, 12, name.length, CHALLENGE_HEAD)
  head.writeUInt32LE(challenge.flags, 20)
  head.set(challenge.serverChallenge, 24)
  writeField(head, 40, challenge.targetInfo.length, CHALLENGE_HEAD + name.length)
  VERSION.copy(head, 48)
  return Buffer.concat([head, name, challenge.targetInfo])
}

/** Throws MalformedError, also for a message that is not in Unicode. */
export function parseAuthenticate(bytes: Uint8Array): Authenticate {
  const what = 'AUTHENTICATE'
  const message = view(bytes, TYPE.AUTHENTICATE, AUTHENTICATE_HEAD_LEAST, what)
  const flags = message.readUInt32LE(60)
  if ((flags & FLAG.UNICODE) === 0) {
    throw new MalformedError(
      'ntlm: an AUTHENTICATE message in Unicode was expected, found one in OEM characters',
    )
  }
  const text = (offset: number): string => utf16Text(field(message, offset, what))
  return {
    flags,
    ntResponse: field(message, 20, what),
    domain: text(28),
    user: text(36),
    workstation: text(44),
    encryptedSessionKey: field(message, 52, what),
    mic:
      firstFieldAt(message) < AUTHENTICATE_HEAD ? undefined : message.subarray(MIC_OFFSET, AUTHENTICATE_HEAD),
  }
}

/** Leaves zeros for the MIC, which covers the whole message, and for the LM response (3.1.5.1.2). */
export function buildAuthenticate(message: Omit<Authenticate, 'mic'>): Buffer {
  const head = Buffer.alloc(AUTHENTICATE_HEAD)
  writeHead(head, TYPE.AUTHENTICATE)
  const fields: [offset: number, value: Uint8Array][] = [
    [28, utf16Bytes(message.domain)],
    [36, utf16Bytes(message.user)],
    [44, utf16Bytes(message.workstation)],
    [12, Buffer.alloc(24)],
    [20, message.ntResponse],
    [52, message.encryptedSessionKey],
  ]
  let at = AUTHENTICATE_HEAD
  for (const [offset, value] of fields) {
    writeField(head, offset, value.length, at)
    at += value.length
  }
  head.writeUInt32LE(message.flags, 60)
  VERSION.copy(head, 64)
  return Buffer.concat([head, ...fields.map(([, value]) => value)])
}

/** Reports whether the bytes are NTLM without SPNEGO around it. */
export function isNtlm(bytes: Uint8Array): boolean {
  return SIGNATURE.equals(bytes.subarray(0, SIGNATURE.length))
}

function view(bytes: Uint8Array, type: number, least: number, what: string): Buffer {
  const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (message.length < least || NTLM_MESSAGE_LIMIT < message.length) {
    throw new MalformedError(
      `ntlm: a ${what} message of ${least} to ${NTLM_MESSAGE_LIMIT} bytes was expected, found ${message.length}`,
    )
  }
  if (!isNtlm(message)) {
    throw new MalformedError(`ntlm: a ${what} message was expected, found no signature of NTLM's`)
  }
  const found = message.readUInt32LE(8)
  if (found !== type) {
    throw new MalformedError(`ntlm: a ${what} message (type ${type}) was expected, found type ${found}`)
  }
  return message
}

/** Reads a length, the allocated length and an offset, and returns the field. */
function field(message: Buffer, offset: number, what: string): Buffer {
  const length = message.readUInt16LE(offset)
  const at = message.readUInt32LE(offset + 4)
  if (length === 0) return message.subarray(0, 0)
  if (message.length < at + length) {
    throw new MalformedError(
      `ntlm: a ${what} message with a field of ${length} bytes at ${at} was expected, found ${message.length} bytes`,
    )
  }
  return message.subarray(at, at + length)
}

function firstFieldAt(message: Buffer): number {
  let first = message.length
  for (const offset of [12, 20, 28, 36, 44, 52]) {
    if (message.readUInt16LE(offset) === 0) continue
    first = Math.min(first, message.readUInt32LE(offset + 4))
  }
  return first
}

function writeHead(message: Buffer, type: number): void {
  SIGNATURE.copy(message)
  message.writeUInt32LE(type, 8)
}

function writeField(message: Buffer, offset: number, length: number, at: number): void {
  message.writeUInt16LE(length, offset)
  message.writeUInt16LE(length, offset + 2)
  message.writeUInt32LE(at, offset + 4)
}
