/** A licensing server of Remote Desktop Services (MS-RDPELE 3.3), which issues a license to every client. */
import { constants, createHash, generateKeyPairSync, type KeyObject, privateDecrypt } from 'node:crypto'
import {
  buildLicense,
  buildValidClient,
  LICENSE_MESSAGE,
  parseLicense,
} from '../../../../proxies/rdp/codec/licensing.ts'
import { parseSecured } from '../../../../proxies/rdp/codec/security-header.ts'
import { LicensingKeys } from '../../../../proxies/rdp/licensing/keys.ts'

const SERVER_RANDOM = Buffer.alloc(32, 0x5a)
export const CHALLENGE = Buffer.from('TEST\0', 'utf16le')

const u16 = (number: number) => Buffer.from([number & 0xff, number >> 8])
const u32 = (number: number) => Buffer.concat([u16(number & 0xffff), u16(number >>> 16)])
const blob = (type: number, bytes: Uint8Array) => Buffer.concat([u16(type), u16(bytes.length), bytes])
const name = (text: string) => {
  const bytes = Buffer.from(`${text}\0`, 'utf16le')
  return Buffer.concat([u32(bytes.length), bytes])
}

/** Data received from the client. */
export interface Issued {
  userName: string
  machineName: string
  hardwareId: string
}

/** Builds a license request with this SERVER_CERTIFICATE. */
export function licenseRequest(certificate: Uint8Array): Buffer {
  const product = [u32(0x60000), name('Microsoft Corporation'), name('A02')]
  const scopes = Buffer.concat([u32(1), blob(0xe, Buffer.from('microsoft.com\0'))])
  const body = Buffer.concat([SERVER_RANDOM, ...product, blob(0xd, u32(1)), blob(0x3, certificate), scopes])
  return buildLicense(LICENSE_MESSAGE.request, body)
}

/** Builds a proprietary certificate of Terminal Services. */
export function proprietaryCertificate(key: KeyObject): Buffer {
  const { n, e } = key.export({ format: 'jwk' })
  const modulus = Buffer.from(n!, 'base64url').reverse()
  const exponent = Buffer.alloc(4)
  exponent.set(Buffer.from(e!, 'base64url').reverse())
  const rsa = Buffer.concat([
    Buffer.from('RSA1'),
    u32(modulus.length + 8),
    u32(modulus.length * 8),
    u32(modulus.length - 1),
    exponent,
    modulus,
    Buffer.alloc(8),
  ])
  return Buffer.concat([u32(1), u32(1), u32(1), blob(6, rsa), blob(8, Buffer.alloc(72))])
}

/** Builds a chain whose last certificate (DER) is the server's. */
export function certificateChain(...certificates: Uint8Array[]): Buffer {
  const each = certificates.map((certificate) => Buffer.concat([u32(certificate.length), certificate]))
  return Buffer.concat([u32(0x80000002), u32(certificates.length), ...each, Buffer.alloc(16)])
}

export class LicenseServer {
  readonly request: Buffer
  issued: Issued | undefined
  readonly #privateKey: KeyObject
  #keys: LicensingKeys | undefined
  #client: Pick<Issued, 'userName' | 'machineName'> | undefined

  /** Default: a key of 512 bits in a proprietary certificate, the most common form. */
  constructor(identity?: { privateKey: KeyObject; certificate: Uint8Array }) {
    if (identity) {
      this.#privateKey = identity.privateKey
      this.request = licenseRequest(identity.certificate)
    } else {
      const pair = generateKeyPairSync('rsa', { modulusLength: 512 })
      this.#privateKey = pair.privateKey
      this.request = licenseRequest(proprietaryCertificate(pair.publicKey))
    }
  }

  /** Returns the response to a client's message, with its security header; the last one ends licensing. */
  answer(data: Uint8Array): Buffer {
    const { type, body } = parseLicense(parseSecured(data).body)
    const bytes = Buffer.from(body)
    switch (type) {
      case LICENSE_MESSAGE.newLicenseRequest:
        return this.#challenge(bytes)
      case LICENSE_MESSAGE.platformChallengeResponse:
        return this.#issue(bytes)
      default:
        return buildValidClient()
    }
  }

  #challenge(body: Buffer): Buffer {
    expectNumbers([body.readUInt32LE(0), 1])
    const clientRandom = body.subarray(8, 40)
    const [secret, user, machine] = blobs(body.subarray(40))
    const length = this.#privateKey.asymmetricKeyDetails!.modulusLength! / 8
    expectNumbers([secret!.length, length + 8])
    const encrypted = Buffer.from(secret!.subarray(0, length)).reverse()
    const padding = constants.RSA_NO_PADDING
    const plain = privateDecrypt({ key: this.#privateKey, padding }, encrypted).reverse()
    expectNumbers([Buffer.compare(plain.subarray(48), Buffer.alloc(length - 48)), 0])
    this.#keys = LicensingKeys.of(plain.subarray(0, 48), { client: clientRandom, server: SERVER_RANDOM })
    const text = (bytes: Buffer | undefined) => bytes!.toString('latin1').replace(/\0$/, '')
    this.#client = { userName: text(user), machineName: text(machine) }
    const sealed = [blob(0x9, this.#keys.cipher(CHALLENGE)), this.#keys.mac(CHALLENGE)]
    return buildLicense(LICENSE_MESSAGE.platformChallenge, Buffer.concat([u32(0), ...sealed]))
  }

  #issue(body: Buffer): Buffer {
    const keys = this.#keys!
    const [encryptedResponse, encryptedHardwareId] = blobs(body.subarray(0, -16))
    const response = keys.cipher(encryptedResponse!)
    const hardwareId = keys.cipher(encryptedHardwareId!)
    const mac = keys.mac(Buffer.concat([response, hardwareId]))
    expectNumbers(
      [Buffer.compare(mac, body.subarray(-16)), 0],
      [Buffer.compare(response.subarray(8), CHALLENGE), 0],
    )
    this.issued = { ...this.#client!, hardwareId: hardwareId.toString('hex') }
    const info = Buffer.from('a license that nobody reads')
    return buildLicense(
      LICENSE_MESSAGE.newLicense,
      Buffer.concat([blob(0x9, keys.cipher(info)), keys.mac(info)]),
    )
  }
}

/** CLIENT_HARDWARE_ID of a machine. */
export const hardwareIdOf = (machineName: string) =>
  `00000104${createHash('md5').update(machineName).digest('hex')}`

function blobs(bytes: Buffer): Buffer[] {
  const found: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt16LE(at + 2)
    found.push(bytes.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return found
}

function expectNumbers(...pairs: [found: number, wanted: number][]): void {
  for (const [found, wanted] of pairs) {
    if (found !== wanted) throw new Error(`the licensing server expected ${wanted}, found ${found}`)
  }
}
