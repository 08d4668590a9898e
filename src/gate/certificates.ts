/**
 * Session certificates: if the account's domain has a certificate authority, the session signs in at the
 * target with a key made for it alone. The authority's key stays in the broker.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { canonicalName, type Target } from '../access/targets.ts'
import type { SessionCredential } from '../contract/gate.ts'
import type { Right } from '../model/rights.ts'
import { authorityOf } from '../vault/authority.ts'
import { certify, NONCE_BYTES, principalFlaw } from '../vault/certificate.ts'
import type { Vault } from '../vault/vault.ts'
import { string } from '../vault/wire.ts'

/** Allows for targets whose clock is behind. */
export const VALID_BEFORE_NOW_S = 60
/**
 * Covers the time from opening the session to the sign-in at the target; the certificate is not needed later.
 */
export const VALID_FROM_NOW_S = 300
const ED25519_KEY_BYTES = 32

/** Extensions without which a target refuses an action, and the rights that need them. */
const EXTENSIONS: readonly (readonly [name: string, rights: readonly Right[]])[] = [
  ['permit-X11-forwarding', ['SSH_X11']],
  ['permit-agent-forwarding', ['SSH_AUTH_AGENT']],
  [
    'permit-port-forwarding',
    ['SSH_DIRECT_TCPIP', 'SSH_REVERSE_TCPIP', 'SSH_DIRECT_UNIXSOCK', 'SSH_REVERSE_UNIXSOCK'],
  ],
  ['permit-pty', ['SSH_SHELL', 'SSH_REMOTE_COMMAND']],
]

export interface CertifiedSession {
  id: string
  user: string
  target: Target
  /** Milliseconds since the epoch. */
  begin: number
}

export type SessionCertificate =
  | { result: 'made'; credential: SessionCredential; serial: bigint }
  /** The domain has no certificate authority. */
  | { result: 'none' }
  /** `message` is for the user. */
  | { result: 'refused'; message: string }

/** Makes a key and its certificate for the session. */
export async function certificateFor(vault: Vault, session: CertifiedSession): Promise<SessionCertificate> {
  const { target, begin } = session
  const pkcs8 = target.domainId === undefined ? undefined : await vault.authorityKey(target.domainId)
  if (!pkcs8) return { result: 'none' }
  try {
    const flaw = principalFlaw(target.accountLogin)
    if (flaw !== undefined) {
      const message = `the login of ${canonicalName(target)} cannot be the principal of a certificate: ${flaw}`
      return { result: 'refused', message }
    }
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const seconds = Math.floor(begin / 1000)
    const serial = randomBytes(8).readBigUInt64BE()
    const certificate = certify(authorityOf(pkcs8), {
      key: {
        type: 'ssh-ed25519',
        fields: string(publicKey.export({ format: 'der', type: 'spki' }).subarray(-ED25519_KEY_BYTES)),
      },
      nonce: randomBytes(NONCE_BYTES),
      serial,
      keyId: keyIdOf(session),
      principals: [target.accountLogin],
      validAfter: seconds - VALID_BEFORE_NOW_S,
      validBefore: seconds + VALID_FROM_NOW_S,
      extensions: EXTENSIONS.filter(([, rights]) =>
        rights.some((right) => target.rights.includes(right)),
      ).map(([name]) => name),
    })
    const key = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
    return { result: 'made', credential: { type: 'ssh_certificate', privateKey: key, certificate }, serial }
  } finally {
    pkcs8.wipe()
  }
}

/** Puts the session's id first, so that no name can be mistaken for it. */
function keyIdOf({ id, user, target }: CertifiedSession): string {
  return `sallyport session=${id} user=${user} account=${canonicalName(target)}`
}
