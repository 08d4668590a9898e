/**
 * OpenSSH's user certificates about Ed25519 keys (PROTOCOL.certkeys), made. The layout stands at the reader,
 * src/identity/certificate.ts.
 */
import { Buffer } from 'node:buffer'
import type { Authority } from './authority.ts'
import { string, uint32, uint64 } from './wire.ts'

export const CERTIFICATE_TYPE = 'ssh-ed25519-cert-v01@openssh.com'
export const NONCE_BYTES = 32
const USER = 1

export interface CertificateTerms {
  /** The 32 bytes of the Ed25519 key that it is about. */
  key: Uint8Array
  /** `NONCE_BYTES` random ones: nobody can choose what the authority signs. */
  nonce: Uint8Array
  serial: bigint
  /** What the target writes into its log. */
  keyId: string
  /** At least one: a certificate without principals would be everybody's. */
  principals: readonly string[]
  /** Seconds since the epoch; it is valid from the first until before the last. */
  validAfter: number
  validBefore: number
  /** Names of OpenSSH's extensions without data, such as `permit-pty`. */
  extensions: readonly string[]
}

/** The certificate's blob. @throws Error without a principal */
export function certify(authority: Authority, terms: CertificateTerms): Buffer {
  if (terms.principals.length === 0) throw new Error('a certificate has to name a principal')
  const extensions = [...terms.extensions].sort().flatMap((name) => [string(name), string('')])
  const signed = Buffer.concat([
    string(CERTIFICATE_TYPE),
    string(terms.nonce),
    string(terms.key),
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

/**
 * Why a login cannot be a principal; undefined: it can. A list of principals is separated by commas where a target
 * reads one (sshd's `principals=`), and by lines and blanks in its AuthorizedPrincipalsFile: a login that holds one of
 * these could stand for somebody else.
 */
export function principalFlaw(login: string): string | undefined {
  if (login === '') return 'it is empty'
  if (/[,\s"#\p{Cc}]/u.test(login)) return 'it holds a comma, a blank, a quote, "#" or a control character'
  return undefined
}
