/** Licensing (MS-RDPELE, MS-RDPBCGR 2.2.1.12): the framing of its messages, and its end. */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { ByteReader } from './reader.ts'
import { buildSecured, SECURITY_FLAG } from './security-header.ts'
import { ByteWriter } from './writer.ts'

export const LICENSE_MESSAGE = {
  request: 0x01,
  platformChallenge: 0x02,
  newLicense: 0x03,
  upgradeLicense: 0x04,
  licenseInfo: 0x12,
  newLicenseRequest: 0x13,
  platformChallengeResponse: 0x15,
  errorAlert: 0xff,
} as const

/** Messages per side: licensing has at most four, and a session does not depend on its end. */
export const LICENSE_MESSAGES = 16

const PREAMBLE = 4
const VERSION_3 = 3
const ERROR_BLOB = 4

/** dwErrorCode of an error alert. */
export const LICENSE_ERROR = {
  invalidServerCertificate: 1,
  noLicense: 2,
  invalidMac: 3,
  invalidScope: 4,
  noLicenseServer: 6,
  /** No license is needed; the connection continues. */
  validClient: 7,
  invalidClient: 8,
} as const

/** dwStateTransition ST_NO_TRANSITION. */
const NO_TRANSITION = 2

export type LicenseMessage = { type: number; body: Uint8Array } & (
  | { error?: undefined }
  | { error: number; transition: number }
)

/** Parses the bytes after the security header; `body` is the data after the preamble. */
export function parseLicense(bytes: Uint8Array): LicenseMessage {
  const reader = new ByteReader(bytes, 'licensing')
  const type = reader.uint8()
  reader.skip(1)
  const length = reader.uint16()
  if (length < PREAMBLE || reader.remaining < length - PREAMBLE) {
    reader.fail(`a length of ${PREAMBLE} to ${bytes.length} bytes was expected, found ${length}`)
  }
  const body = reader.bytes(length - PREAMBLE)
  if (type !== LICENSE_MESSAGE.errorAlert) return { type, body }
  const alert = new ByteReader(body, 'licensing error alert')
  return { type, body, error: alert.uint32(), transition: alert.uint32() }
}

/** Reports whether Demand Active follows this message: the server accepted a license or needs none. */
export function endsLicensing(message: LicenseMessage): boolean {
  if (message.error !== undefined) return message.error === LICENSE_ERROR.validClient
  return message.type === LICENSE_MESSAGE.newLicense || message.type === LICENSE_MESSAGE.upgradeLicense
}

const CLIENT_MESSAGES: ReadonlySet<number> = new Set([
  LICENSE_MESSAGE.licenseInfo,
  LICENSE_MESSAGE.newLicenseRequest,
  LICENSE_MESSAGE.platformChallengeResponse,
  LICENSE_MESSAGE.errorAlert,
])

/**
 * Rebuilds a client's message with its security header, so that the target can read it only as licensing.
 * `bytes` follow the client's header. Throws MalformedError for a message type of servers.
 */
export function rebuildClientLicense(bytes: Uint8Array): Buffer {
  const { type, body } = parseLicense(bytes)
  if (!CLIENT_MESSAGES.has(type)) {
    throw new MalformedError(`licensing: a client's message was expected, found type 0x${type.toString(16)}`)
  }
  return buildSecured(SECURITY_FLAG.license, bytes.subarray(0, PREAMBLE + body.length))
}

/** Builds a server's message, with security header: no license is needed. */
export function buildValidClient(): Buffer {
  return buildAlert(LICENSE_ERROR.validClient)
}

/** Builds a client's message, with security header: it has no license and requests none. */
export function buildNoLicense(): Buffer {
  return buildAlert(LICENSE_ERROR.noLicense)
}

function buildAlert(error: number): Buffer {
  const body = new ByteWriter(16).uint32(error).uint32(NO_TRANSITION).uint16(ERROR_BLOB).uint16(0).finish()
  return buildLicense(LICENSE_MESSAGE.errorAlert, body)
}

/** Builds a message with its security header. `body` is the data after the preamble. */
export function buildLicense(type: number, body: Uint8Array): Buffer {
  const message = new ByteWriter(PREAMBLE + body.length)
    .uint8(type)
    .uint8(VERSION_3)
    .uint16(PREAMBLE + body.length)
    .bytes(body)
  return buildSecured(SECURITY_FLAG.license, message.finish())
}
