/** RADIUS packets (RFC 2865 3, RFC 2869 5.14): requests written, replies checked before anything in them is believed. */
import { Buffer } from 'node:buffer'
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

export const CODES = {
  accessRequest: 1,
  accessAccept: 2,
  accessReject: 3,
  accountingRequest: 4,
  accountingResponse: 5,
  accessChallenge: 11,
  statusServer: 12,
} as const

export const ATTRIBUTES = {
  userName: 1,
  userPassword: 2,
  nasIpAddress: 4,
  serviceType: 6,
  filterId: 11,
  replyMessage: 18,
  state: 24,
  class: 25,
  vendorSpecific: 26,
  calledStationId: 30,
  callingStationId: 31,
  nasIdentifier: 32,
  acctStatusType: 40,
  acctDelayTime: 41,
  acctInputOctets: 42,
  acctOutputOctets: 43,
  acctSessionId: 44,
  acctSessionTime: 46,
  acctTerminateCause: 49,
  acctInputGigawords: 52,
  acctOutputGigawords: 53,
  eventTimestamp: 55,
  nasPortType: 61,
  prompt: 76,
  connectInfo: 77,
  messageAuthenticator: 80,
  nasIpv6Address: 95,
} as const

/** Longest value of an attribute, in octets. */
export const MAX_VALUE = 253
/** Longest password, in octets (RFC 2865 5.2). */
export const MAX_PASSWORD = 128
const MAX_PACKET = 4096
const HEADER = 20
const DIGEST = 16

export class RadiusError extends Error {}

export interface Attribute {
  type: number
  value: Uint8Array
}

export interface Reply {
  code: number
  attributes: Attribute[]
}

export interface Request {
  code: number
  /** 0 to 255. */
  id: number
  /** 16 random octets. */
  authenticator: Uint8Array
  attributes: readonly Attribute[]
}

/**
 * Returns a request, with its Message-Authenticator first: so no forged reply can be made to fit it (CVE-2024-3596).
 * @throws RadiusError for a value or packet that is too long
 */
export function writeRequest({ code, id, authenticator, attributes }: Request, secret: Uint8Array): Buffer {
  const signature = { type: ATTRIBUTES.messageAuthenticator, value: Buffer.alloc(DIGEST) }
  const packet = packetOf({ code, id, authenticator, attributes: [signature, ...attributes] })
  packet.set(createHmac('md5', secret).update(packet).digest(), HEADER + 2)
  return packet
}

/**
 * Returns a request of accounting, whose authenticator is its checksum (RFC 2866 3).
 * @throws RadiusError for a value or packet that is too long
 */
export function writeAccounting(
  { code, id, attributes }: Omit<Request, 'authenticator'>,
  secret: Uint8Array,
): Buffer {
  const packet = packetOf({ code, id, authenticator: Buffer.alloc(DIGEST), attributes })
  packet.set(createHash('md5').update(packet).update(secret).digest(), 4)
  return packet
}

function packetOf({ code, id, authenticator, attributes }: Request): Buffer {
  const parts = attributes.map(attribute)
  const length = parts.reduce((sum, part) => sum + part.length, HEADER)
  if (length > MAX_PACKET)
    throw new RadiusError(`expected a request of at most ${MAX_PACKET} octets, got ${length}`)
  const header = Buffer.alloc(HEADER)
  header[0] = code
  header[1] = id
  header.writeUInt16BE(length, 2)
  header.set(authenticator, 4)
  return Buffer.concat([header, ...parts])
}

export interface ReplyCheck {
  request: Pick<Request, 'id' | 'authenticator'>
  secret: Uint8Array
  /** Whether a reply without Message-Authenticator is refused. One that is there must be right in any case. */
  requireMessageAuthenticator: boolean
}

/**
 * Reads the reply to a request, once both of its checksums have been proved.
 * @throws RadiusError for every other datagram, with the reason
 */
export function readReply(datagram: Uint8Array, check: ReplyCheck): Reply {
  const whole = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.length)
  if (whole.length < HEADER) throw new RadiusError(`expected at least ${HEADER} octets, got ${whole.length}`)
  const length = whole.readUInt16BE(2)
  if (length < HEADER || length > whole.length || length > MAX_PACKET)
    throw new RadiusError(`expected a length of ${HEADER} to ${whole.length}, got ${length}`)
  // Octets beyond the length are padding (RFC 2865 3).
  const packet = Buffer.from(whole.subarray(0, length))
  const { request, secret, requireMessageAuthenticator } = check
  if (packet[1] !== request.id)
    throw new RadiusError(`expected a reply to ${request.id}, got one to ${packet[1]}`)
  const claimed = Buffer.from(packet.subarray(4, HEADER))
  packet.set(request.authenticator, 4)
  const proof = createHash('md5').update(packet).update(secret).digest()
  if (!timingSafeEqual(proof, claimed))
    throw new RadiusError('its authenticator is wrong: is the shared secret the same?')
  const { attributes, signatures } = readAttributes(packet)
  if (signatures.length > 1) throw new RadiusError('it has more than one Message-Authenticator')
  const [at] = signatures
  if (at === undefined) {
    if (requireMessageAuthenticator)
      throw new RadiusError(
        'it has no Message-Authenticator, so it may be forged (CVE-2024-3596): make the server send it',
      )
  } else checkSignature(packet, at, secret)
  return { code: packet[0]!, attributes }
}

/** Checks the signature whose value is at `at`, in a packet that holds the authenticator of its request. */
function checkSignature(packet: Buffer, at: number, secret: Uint8Array): void {
  const signature = Buffer.from(packet.subarray(at, at + DIGEST))
  packet.fill(0, at, at + DIGEST)
  const expected = createHmac('md5', secret).update(packet).digest()
  if (!timingSafeEqual(expected, signature)) throw new RadiusError('its Message-Authenticator is wrong')
}

function readAttributes(packet: Buffer): { attributes: Attribute[]; signatures: number[] } {
  const attributes: Attribute[] = []
  const signatures: number[] = []
  for (let at = HEADER; at < packet.length; ) {
    const size = packet[at + 1] ?? 0
    if (size < 2 || at + size > packet.length)
      throw new RadiusError(`expected an attribute of 2 to ${packet.length - at} octets, got ${size}`)
    const type = packet[at]!
    if (type === ATTRIBUTES.messageAuthenticator) {
      if (size !== DIGEST + 2)
        throw new RadiusError(`expected a Message-Authenticator of ${DIGEST} octets, got ${size - 2}`)
      signatures.push(at + 2)
    } else attributes.push({ type, value: Buffer.from(packet.subarray(at + 2, at + size)) })
    at += size
  }
  return { attributes, signatures }
}

function attribute({ type, value }: Attribute): Buffer {
  if (value.length > MAX_VALUE)
    throw new RadiusError(
      `expected a value of at most ${MAX_VALUE} octets for attribute ${type}, got ${value.length}`,
    )
  return Buffer.concat([Buffer.from([type, value.length + 2]), value])
}

/**
 * Returns the value of User-Password (RFC 2865 5.2). Its protection is MD5 with the shared secret.
 * @throws RadiusError for a password of more than 128 octets
 */
export function hidePassword(password: Uint8Array, authenticator: Uint8Array, secret: Uint8Array): Buffer {
  if (password.length > MAX_PASSWORD)
    throw new RadiusError(`expected a password of at most ${MAX_PASSWORD} octets, got ${password.length}`)
  const hidden = Buffer.alloc(Math.max(1, Math.ceil(password.length / DIGEST)) * DIGEST)
  hidden.set(password)
  let previous: Uint8Array = authenticator
  for (let at = 0; at < hidden.length; at += DIGEST) {
    const pad = createHash('md5').update(secret).update(previous).digest()
    for (let i = 0; i < DIGEST; i++) hidden[at + i]! ^= pad[i]!
    previous = hidden.subarray(at, at + DIGEST)
  }
  return hidden
}

/** Returns the values of an attribute, in order. */
export function valuesOf(attributes: readonly Attribute[], type: number): Uint8Array[] {
  return attributes.filter((each) => each.type === type).map(({ value }) => value)
}

/** Returns a 32-bit value, or undefined where there is none of four octets. */
export function numberOf(attributes: readonly Attribute[], type: number): number | undefined {
  const [value] = valuesOf(attributes, type)
  return value?.length === 4 ? Buffer.from(value).readUInt32BE(0) : undefined
}
