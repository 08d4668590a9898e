/**
 * A licensing client without a license that requests one (MS-RDPELE 3.2), as Remote Desktop Session Hosts
 * require. Licenses are not kept: each session requests one again, as the same machine.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { MalformedError } from '../../bytes/malformed.ts'
import { buildNoLicense, LICENSE_MESSAGE, type LicenseMessage } from '../codec/licensing.ts'
import { licensingKey } from './certificate.ts'
import { encryptSecret, LicensingKeys, SECRET_LENGTH } from './keys.ts'
import {
  buildChallengeResponse,
  buildHardwareId,
  buildNewLicenseRequest,
  buildPlatformChallengeResponse,
  parseLicenseRequest,
  parsePlatformChallenge,
  RANDOM_LENGTH,
} from './messages.ts'

/** Characters of a name: the message must fit the length of its fields. */
const NAME_LIMIT = 255

export interface LicenseClientOptions {
  /** The account. */
  userName: string
  /** The machine that the license is issued to. */
  machineName: string
  random(length: number): Uint8Array
}

export class LicenseClient {
  readonly #options: LicenseClientOptions
  #keys: LicensingKeys | undefined

  constructor(options: LicenseClientOptions) {
    this.#options = options
  }

  /** Returns the response with its security header, or undefined if none is needed. Throws MalformedError. */
  answer({ type, body }: LicenseMessage): Buffer | undefined {
    switch (type) {
      case LICENSE_MESSAGE.request:
        return this.#request(body)
      case LICENSE_MESSAGE.platformChallenge:
        return this.#prove(body)
      default:
        return undefined
    }
  }

  #request(body: Uint8Array): Buffer {
    const { serverRandom, certificate } = parseLicenseRequest(body)
    // Without a key no license can be requested; some servers admit clients without one.
    if (certificate.length === 0) return buildNoLicense()
    const { userName, machineName, random } = this.#options
    const key = licensingKey(certificate)
    const [clientRandom, secret] = [random(RANDOM_LENGTH), random(SECRET_LENGTH)]
    this.#keys = LicensingKeys.of(secret, { client: clientRandom, server: serverRandom })
    const encryptedSecret = encrypted(() => encryptSecret(secret, key))
    return buildNewLicenseRequest({
      clientRandom,
      encryptedSecret,
      userName: userName.slice(0, NAME_LIMIT),
      machineName: machineName.slice(0, NAME_LIMIT),
    })
  }

  #prove(body: Uint8Array): Buffer {
    const keys = this.#keys
    if (!keys) throw new MalformedError('licensing: a request was expected before the challenge, found none')
    const { encrypted, mac } = parsePlatformChallenge(body)
    const challenge = keys.open(encrypted, mac)
    if (!challenge) throw new MalformedError('platform challenge: its code does not fit what is in it')
    const response = buildChallengeResponse(challenge)
    const hardwareId = buildHardwareId(createHash('md5').update(this.#options.machineName).digest())
    return buildPlatformChallengeResponse({
      encryptedResponse: keys.cipher(response),
      encryptedHardwareId: keys.cipher(hardwareId),
      mac: keys.mac(Buffer.concat([response, hardwareId])),
    })
  }
}

function encrypted(encrypt: () => Buffer): Buffer {
  try {
    return encrypt()
  } catch (error) {
    throw new MalformedError(
      `licensing certificate: a key to encrypt with was expected (${(error as Error).message})`,
    )
  }
}
