/** A security key in software (WebAuthn, ES256, no attestation), which can also lie. */
import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto'

export interface Lies {
  origin?: string
  /** Host name that it signs for. */
  rpId?: string
  challenge?: string
  type?: string
  /** Flags of the authenticator data; bit 0: a touch. */
  flags?: number
  signCount?: number
  /** Changes the signature. */
  isForged?: boolean
  /** Id in the answer. */
  id?: string
}

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest()
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')

export class SoftwareKey {
  readonly #pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  readonly #origin: string
  readonly id: Buffer
  #count = 0

  /** `origin`: of the page that it believes to talk to. */
  constructor(origin: string, id: Buffer = randomBytes(32)) {
    this.#origin = origin
    this.id = id
  }

  /** Answers `navigator.credentials.create`, as the script of the page would send it. */
  create({ challenge }: { challenge: string }, lies: Lies = {}): string {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(this.id.length)
    const { x = '', y = '' } = this.#pair.publicKey.export({ format: 'jwk' })
    const coordinate = (label: number, value: string) =>
      Buffer.concat([Buffer.from([label, 0x58, 32]), Buffer.from(value, 'base64url')])
    const cose = Buffer.concat([
      Buffer.from('a50102032620', 'hex'),
      Buffer.from([1]),
      coordinate(0x21, x),
      coordinate(0x22, y),
    ])
    const data = Buffer.concat([
      this.#data({ flags: 0x41, ...lies }),
      Buffer.alloc(16),
      length,
      this.id,
      cose,
    ])
    const size = Buffer.alloc(2)
    size.writeUInt16BE(data.length)
    const attestation = Buffer.concat([
      Buffer.from([0xa3, 0x63]),
      Buffer.from('fmt'),
      Buffer.from([0x64]),
      Buffer.from('none'),
      Buffer.from([0x67]),
      Buffer.from('attStmt'),
      Buffer.from([0xa0, 0x68]),
      Buffer.from('authData'),
      Buffer.from([0x59]),
      size,
      data,
    ])
    return this.#answer(
      {
        clientDataJSON: text(this.#client('webauthn.create', challenge, lies)),
        attestationObject: text(attestation),
      },
      lies,
    )
  }

  /** Answers `navigator.credentials.get`. */
  get({ challenge }: { challenge: string }, lies: Lies = {}): string {
    const client = this.#client('webauthn.get', challenge, lies)
    const data = this.#data({ flags: 1, ...lies })
    const sign = createSign('sha256').update(Buffer.concat([data, sha256(client)]))
    const signature = sign.sign(this.#pair.privateKey)
    if (lies.isForged) signature[signature.length - 1]! ^= 1
    const response = {
      clientDataJSON: text(client),
      authenticatorData: text(data),
      signature: text(signature),
    }
    return this.#answer(response, lies)
  }

  #answer(response: object, lies: Lies): string {
    const id = lies.id ?? text(this.id)
    return JSON.stringify({ id, rawId: id, type: 'public-key', clientExtensionResults: {}, response })
  }

  #client(type: string, challenge: string, lies: Lies): Buffer {
    return Buffer.from(
      JSON.stringify({
        type: lies.type ?? type,
        challenge: lies.challenge ?? challenge,
        origin: lies.origin ?? this.#origin,
        crossOrigin: false,
      }),
    )
  }

  #data({ flags = 1, rpId = new URL(this.#origin).hostname, signCount = ++this.#count }: Lies): Buffer {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(signCount)
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), count])
  }
}
