/** Messages of licensing (MS-RDPELE 2.2.2), as far as a client without a license needs them. */
import { Buffer } from 'node:buffer'
import { buildLicense, LICENSE_MESSAGE } from '../codec/licensing.ts'
import { ByteReader } from '../codec/reader.ts'
import { ByteWriter } from '../codec/writer.ts'

export const RANDOM_LENGTH = 32
export const MAC_LENGTH = 16
/** PLATFORMID of Windows clients. */
const PLATFORM = 0x04010000
const KEY_EXCHANGE_RSA = 1

/** wBlobType (MS-RDPBCGR 2.2.1.12.1.2). */
const BLOB = { random: 0x2, encrypted: 0x9, userName: 0xf, machineName: 0x10 } as const

/** Bytes of the names of a company and of a product. */
const NAME_LIMIT = 1024
/** Bytes of a challenge; servers send the word TEST. */
const CHALLENGE_LIMIT = 1024

/** Fields of a challenge response: a system without a number of its own, and full detail. */
const RESPONSE = { version: 0x0100, client: 0xff00, detail: 3 } as const

export interface LicenseRequest {
  serverRandom: Uint8Array
  /** A SERVER_CERTIFICATE; empty if there is none. */
  certificate: Uint8Array
}

/** Parses a Server License Request (2.2.2.1). */
export function parseLicenseRequest(body: Uint8Array): LicenseRequest {
  const reader = new ByteReader(body, 'license request')
  const serverRandom = reader.bytes(RANDOM_LENGTH)
  reader.skip(4)
  for (let names = 0; names < 2; names++) {
    const length = reader.uint32()
    if (NAME_LIMIT < length) {
      reader.fail(`a name of at most ${NAME_LIMIT} bytes was expected, found ${length}`)
    }
    reader.skip(length)
  }
  // Skips the list of key exchanges: only one exists.
  readBlob(reader)
  return { serverRandom, certificate: readBlob(reader) }
}

export interface PlatformChallenge {
  encrypted: Uint8Array
  mac: Uint8Array
}

/** Parses a Server Platform Challenge (2.2.2.4). */
export function parsePlatformChallenge(body: Uint8Array): PlatformChallenge {
  const reader = new ByteReader(body, 'platform challenge')
  reader.skip(4)
  const encrypted = readBlob(reader)
  if (CHALLENGE_LIMIT < encrypted.length) {
    reader.fail(`a challenge of at most ${CHALLENGE_LIMIT} bytes was expected, found ${encrypted.length}`)
  }
  return { encrypted, mac: reader.bytes(MAC_LENGTH) }
}

/** Ignores the type, which some servers leave out. */
function readBlob(reader: ByteReader): Uint8Array {
  reader.skip(2)
  return reader.bytes(reader.uint16())
}

export interface NewLicenseRequest {
  clientRandom: Uint8Array
  encryptedSecret: Uint8Array
  userName: string
  machineName: string
}

/** Builds a Client New License Request (2.2.2.2) with its security header. */
export function buildNewLicenseRequest(request: NewLicenseRequest): Buffer {
  const writer = new ByteWriter(256).uint32(KEY_EXCHANGE_RSA).uint32(PLATFORM).bytes(request.clientRandom)
  writeBlob(writer, BLOB.random, request.encryptedSecret)
  writeBlob(writer, BLOB.userName, Buffer.from(`${request.userName}\0`, 'latin1'))
  writeBlob(writer, BLOB.machineName, Buffer.from(`${request.machineName}\0`, 'latin1'))
  return buildLicense(LICENSE_MESSAGE.newLicenseRequest, writer.finish())
}

/** Builds a CLIENT_HARDWARE_ID (2.2.2.3.1), the machine that the license is issued to; `id` has 16 bytes. */
export function buildHardwareId(id: Uint8Array): Buffer {
  return new ByteWriter(20).uint32(PLATFORM).bytes(id).finish()
}

/** Builds a PLATFORM_CHALLENGE_RESPONSE_DATA (2.2.2.5.1), before encryption. */
export function buildChallengeResponse(challenge: Uint8Array): Buffer {
  const { version, client, detail } = RESPONSE
  const head = new ByteWriter(8 + challenge.length).uint16(version).uint16(client).uint16(detail)
  return head.uint16(challenge.length).bytes(challenge).finish()
}

export interface PlatformChallengeResponse {
  encryptedResponse: Uint8Array
  encryptedHardwareId: Uint8Array
  mac: Uint8Array
}

/** Builds a Client Platform Challenge Response (2.2.2.5) with its security header. */
export function buildPlatformChallengeResponse(response: PlatformChallengeResponse): Buffer {
  const writer = new ByteWriter(128)
  writeBlob(writer, BLOB.encrypted, response.encryptedResponse)
  writeBlob(writer, BLOB.encrypted, response.encryptedHardwareId)
  return buildLicense(LICENSE_MESSAGE.platformChallengeResponse, writer.bytes(response.mac).finish())
}

function writeBlob(writer: ByteWriter, type: number, bytes: Uint8Array): void {
  writer.uint16(type).uint16(bytes.length).bytes(bytes)
}
