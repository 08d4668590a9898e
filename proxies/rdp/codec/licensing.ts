/** Licensing (MS-RDPELE, MS-RDPBCGR 2.2.1.12): the frame of its messages, and how it ends. */
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

/** Licensing has at most four messages of either side; there is no end of it that a session would need. */
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
  /** No error: no license is needed, and the connection goes on. */
  validClient: 7,
  invalidClient: 8,
} as const

/** dwStateTransition: the state stays what it is. */
const NO_TRANSITION = 2

export type LicenseMessage = { type: number; body: Uint8Array } & (
  | { error?: undefined }
  | { error: number; transition: number }
)

/** Of what follows the security header; `body` is what follows the preamble. */
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

/** Whether the server goes on to Demand Active after this message: it has a license, or wants none. */
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
 * A client's message built anew, with its security header: whoever reads it takes it for licensing and for nothing else.
 * `bytes`: what follows the client's header. Throws MalformedError for a message that is a server's.
 */
export function rebuildClientLicense(bytes: Uint8Array): Buffer {
  const { type, body } = parseLicense(bytes)
  if (!CLIENT_MESSAGES.has(type)) {
    throw new MalformedError(`licensing: a client's message was expected, found type 0x${type.toString(16)}`)
  }
  return buildSecured(SECURITY_FLAG.license, bytes.subarray(0, PREAMBLE + body.length))
}

/** Of a server, with its security header: no license is needed. */
export function buildValidClient(): Buffer {
  return buildAlert(LICENSE_ERROR.validClient)
}

/** Of a client, with its security header: it has no license and asks for none. */
export function buildNoLicense(): Buffer {
  return buildAlert(LICENSE_ERROR.noLicense)
}

function buildAlert(error: number): Buffer {
  const body = new ByteWriter(16).uint32(error).uint32(NO_TRANSITION).uint16(ERROR_BLOB).uint16(0).finish()
  return buildLicense(LICENSE_MESSAGE.errorAlert, body)
}

/** Any message, with its security header. `body` is what follows the preamble. */
export function buildLicense(type: number, body: Uint8Array): Buffer {
  const message = new ByteWriter(PREAMBLE + body.length)
    .uint8(type)
    .uint8(VERSION_3)
    .uint16(PREAMBLE + body.length)
    .bytes(body)
  return buildSecured(SECURITY_FLAG.license, message.finish())
}
