/** The public key of a licensing server, from a proprietary or X.509 certificate (MS-RDPBCGR 2.2.1.4.3.1). */
import { Buffer } from 'node:buffer'
import { createPublicKey, type KeyObject } from 'node:crypto'
import { MalformedError } from '../../bytes/malformed.ts'
import { ByteReader } from '../codec/reader.ts'
import { subjectPublicKey } from '../credssp/certificate.ts'

const WHAT = 'licensing certificate'
/** dwVersion; its highest bit marks a temporary certificate. */
const VERSION = { mask: 0x7fffffff, proprietary: 1, x509: 2 } as const
/** The only algorithms defined: RSA, signed with MD5. */
const ALGORITHM = 1
const BLOB_RSA_KEY = 6
/** RSA1 */
const MAGIC = 0x31415352
/** Bytes of zeros after a modulus and after data encrypted with it. */
export const PADDING = 8
/** Bytes: a smaller modulus cannot hold the secret, and a larger one costs time. */
const MODULUS = { least: 64, most: 1024 } as const
/** MS-RDPBCGR 2.2.1.4.3.1.2 allows 2 to 200. */
const CHAIN_LIMIT = 200

/**
 * Does not verify the certificate: its key only protects a license that is not kept, inside TLS with a
 * certificate that was checked. Throws MalformedError.
 */
export function licensingKey(certificate: Uint8Array): KeyObject {
  const reader = new ByteReader(certificate, WHAT)
  const version = reader.uint32() & VERSION.mask
  reader.expect('version', version, VERSION.proprietary, VERSION.x509)
  const key = version === VERSION.x509 ? keyOfChain(reader) : proprietaryKey(reader)
  const length = modulusLength(key)
  if (!isModulus(length)) {
    reader.fail(`an RSA key of ${MODULUS.least} to ${MODULUS.most} bytes was expected, found ${length} bytes`)
  }
  return key
}

/** Bytes of the modulus; 0 for a key other than RSA. */
export function modulusLength(key: KeyObject): number {
  return Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8)
}

const isModulus = (bytes: number) => MODULUS.least <= bytes && bytes <= MODULUS.most

/** Reads an RSA_PUBLIC_KEY (little-endian). Its signature proves nothing: the signing key is published. */
function proprietaryKey(reader: ByteReader): KeyObject {
  reader.expect('signature algorithm', reader.uint32(), ALGORITHM)
  reader.expect('key algorithm', reader.uint32(), ALGORITHM)
  reader.expect('blob type', reader.uint16(), BLOB_RSA_KEY)
  reader.skip(2)
  reader.expect('magic number', reader.uint32(), MAGIC)
  const length = reader.uint32() - PADDING
  if (!isModulus(length)) {
    reader.fail(`a modulus of ${MODULUS.least} to ${MODULUS.most} bytes was expected, found ${length}`)
  }
  reader.skip(4 + 4)
  const exponent = reader.bytes(4)
  const modulus = reader.bytes(length)
  return made(() =>
    createPublicKey({
      key: { kty: 'RSA', n: number(modulus), e: number(exponent) },
      format: 'jwk',
    }),
  )
}

/** Returns the key of the last certificate, which is the server's. */
function keyOfChain(reader: ByteReader): KeyObject {
  const count = reader.uint32()
  if (count < 1 || CHAIN_LIMIT < count) {
    reader.fail(`1 to ${CHAIN_LIMIT} certificates were expected, found ${count}`)
  }
  let last: Uint8Array = new Uint8Array(0)
  for (let left = count; left > 0; left--) last = reader.bytes(reader.uint32())
  // Rebuilds the key, since Windows names its algorithm by an identifier that OpenSSL does not know.
  const key = Buffer.from(subjectPublicKey(last))
  return made(() => createPublicKey({ key, format: 'der', type: 'pkcs1' }))
}

function number(littleEndian: Uint8Array): string {
  return Buffer.from(littleEndian).reverse().toString('base64url')
}

function made(make: () => KeyObject): KeyObject {
  try {
    return make()
  } catch (error) {
    throw new MalformedError(`${WHAT}: an RSA key was expected (${(error as Error).message})`)
  }
}
