/**
 * A domain's certificate authority: the key that certifies the keys of sessions. Kept as PKCS#8 without
 * passphrase, sealed like every secret: a passphrase stored next to it would protect nothing, and would cost
 * every session its slow derivation.
 */
import { Buffer } from 'node:buffer'
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import ssh2 from 'ssh2'
import { Secret } from '../model/secret.ts'
import { CredentialError, MAX_PASSPHRASE_BYTES, MAX_PRIVATE_KEY_BYTES } from './credentials.ts'
import { mpint, string } from './wire.ts'

/** The minimum of NIST SP 800-131A; OpenSSH has made longer keys since 2017 at least. */
export const MIN_CA_RSA_BITS = 2048
export const MAX_CA_RSA_BITS = 16_384

export interface Authority {
  /** Blob of the public key (RFC 4253 6.6). */
  blob: Buffer
  /** Returns the signature field for the data: name of the algorithm and signature. */
  sign(data: Uint8Array): Buffer
}

/** An authority's key as supplied. The caller wipes it. */
export interface AuthorityKey {
  privateKey: Secret
  passphrase?: Secret
}

/**
 * Converts the key to the form in which it is kept, with the line of its public key.
 * @throws CredentialError for `ca_private_key` or `ca_passphrase`
 */
export function readAuthorityKey(given: AuthorityKey): { pkcs8: Secret; publicKey: string } {
  bounded('ca_private_key', given.privateKey, MAX_PRIVATE_KEY_BYTES)
  if (given.passphrase) bounded('ca_passphrase', given.passphrase, MAX_PASSPHRASE_BYTES)
  const key = keyObject(given)
  const { type, blob } = schemeOf(key)
  const der = key.export({ format: 'der', type: 'pkcs8' })
  const pkcs8 = Secret.of(der)
  der.fill(0)
  return { pkcs8, publicKey: `${type} ${blob.toString('base64')}` }
}

/** Makes the authority from a key that `readAuthorityKey` returned. */
export function authorityOf(pkcs8: Secret): Authority {
  const key = createPrivateKey({ key: pkcs8.reveal(), format: 'der', type: 'pkcs8' })
  const { blob, signatureOf } = schemeOf(key)
  return { blob, sign: signatureOf }
}

function bounded(field: string, secret: Secret, limit: number): void {
  if (secret.length === 0) throw new CredentialError(field, `${field} must not be empty`)
  if (limit < secret.length)
    throw new CredentialError(field, `${field} must not be longer than ${limit} bytes`)
}

/** Parses OpenSSH's own form and the older PEM by ssh2, PKCS#8 by Node. */
function keyObject({ privateKey, passphrase }: AuthorityKey): KeyObject {
  const secret = passphrase && Buffer.from(passphrase.reveal())
  const parsed = ssh2.utils.parseKey(privateKey.reveal(), secret)
  try {
    if (!(parsed instanceof Error)) {
      if (!parsed.isPrivateKey()) {
        throw new CredentialError('ca_private_key', 'this is a public key: expected the private one')
      }
      return createPrivateKey(parsed.getPrivatePEM())
    }
    return createPrivateKey({
      key: privateKey.reveal(),
      format: 'pem',
      ...(secret && { passphrase: secret }),
    })
  } catch (error) {
    if (error instanceof CredentialError) throw error
    const why = `${parsed instanceof Error ? parsed.message : ''} ${error instanceof Error ? error.message : ''}`
    if (/passphrase|decrypt|integrity check/i.test(why)) {
      throw new CredentialError(
        'ca_passphrase',
        'the private key is encrypted and the passphrase is missing or wrong',
      )
    }
    throw new CredentialError(
      'ca_private_key',
      'expected a private key (Ed25519, ECDSA or RSA) in OpenSSH or PEM form, without anything else',
    )
  } finally {
    secret?.fill(0)
  }
}

interface Scheme {
  type: string
  blob: Buffer
  signatureOf(data: Uint8Array): Buffer
}

const CURVES: Readonly<Record<string, { name: string; hash: string }>> = {
  'P-256': { name: 'nistp256', hash: 'sha256' },
  'P-384': { name: 'nistp384', hash: 'sha384' },
  'P-521': { name: 'nistp521', hash: 'sha512' },
}

/** Computes the public key from the private one; a public half in the file is ignored. */
function schemeOf(key: KeyObject): Scheme {
  const { crv = '', x = '', y = '', n = '', e = '' } = createPublicKey(key).export({ format: 'jwk' })
  const bytes = (text: string) => Buffer.from(text, 'base64url')
  const curve = CURVES[crv]
  if (key.asymmetricKeyType === 'ed25519') {
    const type = 'ssh-ed25519'
    return {
      type,
      blob: Buffer.concat([string(type), string(bytes(x))]),
      signatureOf: (data) => Buffer.concat([string(type), string(sign(null, data, key))]),
    }
  }
  if (key.asymmetricKeyType === 'ec' && curve) {
    const type = `ecdsa-sha2-${curve.name}`
    const point = Buffer.concat([Buffer.of(4), bytes(x), bytes(y)])
    return {
      type,
      blob: Buffer.concat([string(type), string(curve.name), string(point)]),
      signatureOf: (data) => {
        // RFC 5656 3.1.2: r and s as numbers.
        const raw = sign(curve.hash, data, { key, dsaEncoding: 'ieee-p1363' })
        const half = raw.length / 2
        const numbers = Buffer.concat([mpint(raw.subarray(0, half)), mpint(raw.subarray(half))])
        return Buffer.concat([string(type), string(numbers)])
      },
    }
  }
  if (key.asymmetricKeyType === 'rsa') {
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    if (bits < MIN_CA_RSA_BITS || MAX_CA_RSA_BITS < bits) {
      const message = `an RSA key of ${MIN_CA_RSA_BITS} to ${MAX_CA_RSA_BITS} bits was expected, this has ${bits}`
      throw new CredentialError('ca_private_key', message)
    }
    return {
      type: 'ssh-rsa',
      blob: Buffer.concat([string('ssh-rsa'), mpint(bytes(e)), mpint(bytes(n))]),
      // RFC 8332: never ssh-rsa, which uses SHA-1.
      signatureOf: (data) => Buffer.concat([string('rsa-sha2-512'), string(sign('sha512', data, key))]),
    }
  }
  throw new CredentialError(
    'ca_private_key',
    'expected an Ed25519, ECDSA (nistp256, nistp384, nistp521) or RSA key',
  )
}
