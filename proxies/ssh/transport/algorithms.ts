/**
 * The algorithms that each leg offers. AES-GCM comes first: hardware supports it, and it is fastest in the
 * relay. Nothing with SHA-1, CBC or compression.
 */
import crypto from 'node:crypto'
import type { Algorithms, KexAlgorithm, ServerHostKeyAlgorithm } from 'ssh2'

/** Added by patches/, so ssh2's types lack the name; ML-KEM came with Node 24.7. */
const ML_KEM: string[] = 'encapsulate' in crypto ? ['mlkem768x25519-sha256'] : []

/** Post-quantum first: an attacker who stores today's traffic cannot read it with tomorrow's computer. */
const KEX: KexAlgorithm[] = [
  ...(ML_KEM as KexAlgorithm[]),
  'curve25519-sha256',
  'curve25519-sha256@libssh.org',
  'ecdh-sha2-nistp256',
  'ecdh-sha2-nistp384',
  'ecdh-sha2-nistp521',
  'diffie-hellman-group14-sha256',
]

/**
 * For targets that prefer these. The front does not offer them: any client could make the bastion compute
 * them, 3 to 18 ms each.
 */
const COSTLY_KEX: KexAlgorithm[] = ['diffie-hellman-group16-sha512', 'diffie-hellman-group18-sha512']

const CIPHER: Algorithms['cipher'] = [
  'aes128-gcm@openssh.com',
  'aes256-gcm@openssh.com',
  'chacha20-poly1305@openssh.com',
  'aes128-ctr',
  'aes192-ctr',
  'aes256-ctr',
]

const MAC: Algorithms['hmac'] = [
  'hmac-sha2-256-etm@openssh.com',
  'hmac-sha2-512-etm@openssh.com',
  'hmac-sha2-256',
  'hmac-sha2-512',
]

const HOST_KEYS: ServerHostKeyAlgorithm[] = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
]

/** Certificates for these keys (PROTOCOL.certkeys), which ssh2's types lack. */
export const HOST_CERTIFICATES = HOST_KEYS.map(
  (algorithm) => `${algorithm}-cert-v01@openssh.com` as ServerHostKeyAlgorithm,
)

/** Toward the user's client. Only host key algorithms with a key are used; RSA only with SHA-2. */
export const FRONT_ALGORITHMS: Algorithms = {
  kex: KEX,
  cipher: CIPHER,
  hmac: MAC,
  compress: ['none'],
  serverHostKey: [...HOST_CERTIFICATES, ...HOST_KEYS],
}

/** Toward the target. */
export const BACK_ALGORITHMS: Algorithms = {
  kex: [...KEX, ...COSTLY_KEX],
  cipher: CIPHER,
  hmac: MAC,
  compress: ['none'],
  serverHostKey: HOST_KEYS,
}
