/** CredSSP's use of a TLS certificate (X.509, RFC 5280): its public key and the hash for channel bindings. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { contextTag, DerReader, TAG } from '../../bytes/der.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { channelBindingsHash } from '../ntlm/keys.ts'

const WHAT = 'certificate'

/** RFC 5929 4.1: the signature's hash, but SHA-256 for MD5 and SHA-1. Keyed by the OID's value in hex. */
const SIGNATURE_HASHES: Readonly<Record<string, string>> = {
  '2a864886f70d010104': 'sha256',
  '2a864886f70d010105': 'sha256',
  '2a864886f70d01010b': 'sha256',
  '2a864886f70d01010c': 'sha384',
  '2a864886f70d01010d': 'sha512',
  '2a8648ce3d0401': 'sha256',
  '2a8648ce3d040302': 'sha256',
  '2a8648ce3d040303': 'sha384',
  '2a8648ce3d040304': 'sha512',
}

const RSA_PSS = '2a864886f70d01010a'

/** Hashes in the parameters of RSASSA-PSS (RFC 4055 3.1). */
const PSS_HASHES: Readonly<Record<string, string>> = {
  '608648016503040201': 'sha256',
  '608648016503040202': 'sha384',
  '608648016503040203': 'sha512',
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

/** Returns SubjectPublicKey, the value inside the BIT STRING. `certificate` is DER. Throws MalformedError. */
export function subjectPublicKey(certificate: Uint8Array): Uint8Array {
  const body = new DerReader(certificate, WHAT).enter(TAG.SEQUENCE).enter(TAG.SEQUENCE)
  body.optional(contextTag(0))
  // serialNumber, signature, issuer, validity, subject
  body.take(TAG.INTEGER)
  for (let skipped = 0; skipped < 4; skipped++) body.take(TAG.SEQUENCE)
  const info = body.enter(TAG.SEQUENCE)
  info.take(TAG.SEQUENCE)
  const bits = info.take(TAG.BIT_STRING)
  if (bits[0] !== 0 || bits.length < 2) {
    throw new MalformedError(
      `${WHAT}: a public key of whole bytes was expected, found ${bits.length} bytes of bits`,
    )
  }
  return bits.subarray(1)
}

/**
 * Returns the MD5 of the channel bindings, or undefined if the signature has no hash (Ed25519). Throws
 * MalformedError if the certificate cannot be parsed.
 */
export function channelBindings(certificate: Uint8Array): Uint8Array | undefined {
  const outer = new DerReader(certificate, WHAT).enter(TAG.SEQUENCE)
  outer.take(TAG.SEQUENCE)
  const algorithm = outer.enter(TAG.SEQUENCE)
  const identifier = hex(algorithm.take(TAG.OID))
  const name = identifier === RSA_PSS ? pssHash(algorithm) : SIGNATURE_HASHES[identifier]
  return name === undefined ? undefined : channelBindingsHash(createHash(name).update(certificate).digest())
}

function pssHash(algorithm: DerReader): string | undefined {
  const hash = algorithm.enterOptional(TAG.SEQUENCE)?.enterOptional(contextTag(0))
  // The default is SHA-1.
  return hash ? PSS_HASHES[hex(hash.enter(TAG.SEQUENCE).take(TAG.OID))] : 'sha256'
}
