/** A private key of SSH, whatever the form of its file: its numbers, as OpenSSH and PuTTY order them. */
import { Buffer } from 'node:buffer'
import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import ssh2 from 'ssh2'
import { mpint, string } from '../wire.ts'

export interface KeyParts {
  key: KeyObject
  /** Of SSH: `ssh-ed25519`. */
  type: string
  comment: string
  /** The public key, in SSH's form. */
  blob: Buffer
  /** Fields behind the type in a private key of OpenSSH's form. */
  openssh: Buffer
  /** The private fields of PuTTY's form. */
  putty: Buffer
}

const CURVES: Readonly<Record<string, string>> = {
  'P-256': 'nistp256',
  'P-384': 'nistp384',
  'P-521': 'nistp521',
}

/**
 * Reads a key in OpenSSH or PEM form that the vault has accepted.
 * @throws Error if it is none, without any of it
 */
export function partsOf(file: string, passphrase: string | undefined): KeyParts {
  const parsed = ssh2.utils.parseKey(file, passphrase)
  if (parsed instanceof Error) throw new Error('the stored key cannot be read')
  const key = createPrivateKey(parsed.getPrivatePEM())
  return partsOfKey(key, parsed.comment ?? '')
}

/** @throws Error if its type has no such form */
export function partsOfKey(key: KeyObject, comment: string): KeyParts {
  return { key, comment, ...fieldsOf(key.export({ format: 'jwk' })) }
}

function fieldsOf(jwk: JsonWebKey): Pick<KeyParts, 'type' | 'blob' | 'openssh' | 'putty'> {
  const number = (field: 'n' | 'e' | 'd' | 'p' | 'q' | 'qi' | 'x' | 'y') =>
    Buffer.from(jwk[field] ?? '', 'base64url')
  if (jwk.kty === 'RSA') {
    const [n, e, d, p, q, qi] = (['n', 'e', 'd', 'p', 'q', 'qi'] as const).map((one) => mpint(number(one)))
    return {
      type: 'ssh-rsa',
      blob: Buffer.concat([string('ssh-rsa'), e!, n!]),
      openssh: Buffer.concat([n!, e!, d!, qi!, p!, q!]),
      putty: Buffer.concat([d!, p!, q!, qi!]),
    }
  }
  if (jwk.kty === 'OKP' && jwk.crv === 'Ed25519') {
    const [own, seed] = [number('x'), number('d')]
    return {
      type: 'ssh-ed25519',
      blob: Buffer.concat([string('ssh-ed25519'), string(own)]),
      openssh: Buffer.concat([string(own), string(Buffer.concat([seed, own]))]),
      putty: string(seed),
    }
  }
  const curve = CURVES[jwk.crv ?? '']
  if (curve === undefined) throw new Error('the stored key is of a type without such a form')
  const type = `ecdsa-sha2-${curve}`
  const point = string(Buffer.concat([Buffer.of(4), number('x'), number('y')]))
  const secret = mpint(number('d'))
  return {
    type,
    blob: Buffer.concat([string(type), string(curve), point]),
    openssh: Buffer.concat([string(curve), point, secret]),
    putty: secret,
  }
}
