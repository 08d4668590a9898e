/**
 * Makes OpenSSH's user certificates (PROTOCOL.certkeys). For the layout see the reader,
 * src/identity/certificate.ts.
 */
import { Buffer } from 'node:buffer'
import { certificateTypeOf } from '../ssh-wire/certificate-type.ts'
import type { Authority } from './authority.ts'
import { string, uint32, uint64 } from './wire.ts'

export const NONCE_BYTES = 32
const USER = 1

export interface CertificateTerms {
  /** The certified key: its type, and the fields behind that in its blob (RFC 4253 6.6). */
  key: { type: string; fields: Uint8Array }
  /** `NONCE_BYTES` random bytes, so that no caller can choose what the authority signs. */
  nonce: Uint8Array
  serial: bigint
  /** Name that the target writes into its log. */
  keyId: string
  /** At least one: a certificate without principals would be valid for every user. */
  principals: readonly string[]
  /** Seconds since the epoch; valid from `validAfter`, and until before `validBefore`. */
  validAfter: number
  validBefore: number
  /** Names of OpenSSH's extensions without data, such as `permit-pty`. */
  extensions: readonly string[]
}

/** Returns the certificate's blob. @throws Error without a principal */
export function certify(authority: Authority, terms: CertificateTerms): Buffer {
  if (terms.principals.length === 0) throw new Error('a certificate has to name a principal')
  const extensions = [...terms.extensions].sort().flatMap((name) => [string(name), string('')])
  const signed = Buffer.concat([
    string(certificateTypeOf(terms.key.type)),
    string(terms.nonce),
    terms.key.fields,
    uint64(terms.serial),
    uint32(USER),
    string(terms.keyId),
    string(Buffer.concat(terms.principals.map((name) => string(name)))),
    uint64(BigInt(terms.validAfter)),
    uint64(BigInt(terms.validBefore)),
    string(''),
    string(Buffer.concat(extensions)),
    string(''),
    string(authority.blob),
  ])
  return Buffer.concat([signed, string(authority.sign(signed))])
}

/** Returns the line of a certificate, as in a file KEY-cert.pub. */
export function certificateLine({ key }: Pick<CertificateTerms, 'key'>, blob: Uint8Array): string {
  return `${certificateTypeOf(key.type)} ${Buffer.from(blob).toString('base64')}`
}

/**
 * Returns why a login cannot be a principal, or undefined if it can. Targets separate principals by commas
 * (sshd's `principals=`), or by lines and blanks (its AuthorizedPrincipalsFile): a login that contains one of
 * these could stand for another user.
 */
export function principalFlaw(login: string): string | undefined {
  if (login === '') return 'it is empty'
  if (/[,\s"#\p{Cc}]/u.test(login)) return 'it holds a comma, a blank, a quote, "#" or a control character'
  return undefined
}
