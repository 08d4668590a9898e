/**
 * The algorithms that each leg offers. AES-GCM comes first: hardware carries it, and it is what the relay is
 * fastest with. Nothing with SHA-1, CBC or compression.
 */
import type { Algorithms, KexAlgorithm, ServerHostKeyAlgorithm } from 'ssh2'

/**
 * The older name of curve25519-sha256 stands first on purpose. A client may send its first key exchange packet on
 * a guess (RFC 4253 7.1; dropbear's does), which is right when both sides prefer the same algorithm. ssh2 drops
 * that packet in every case, so the guess must never be right: no client that guesses prefers this name.
 */
const KEX: KexAlgorithm[] = [
  'curve25519-sha256@libssh.org',
  'curve25519-sha256',
  'ecdh-sha2-nistp256',
  'ecdh-sha2-nistp384',
  'ecdh-sha2-nistp521',
  'diffie-hellman-group14-sha256',
]

/** Targets may prefer these; before the front, anybody could make us compute them: 3 to 18 ms each. */
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

/** Host keys of targets; RSA only with SHA-2. */
const TARGET_HOST_KEYS: ServerHostKeyAlgorithm[] = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
]

/** Toward the user's client. The host keys given to the server decide its serverHostKey list. */
export const FRONT_ALGORITHMS: Algorithms = { kex: KEX, cipher: CIPHER, hmac: MAC, compress: ['none'] }

/** Toward the target. */
export const BACK_ALGORITHMS: Algorithms = {
  kex: [...KEX, ...COSTLY_KEX],
  cipher: CIPHER,
  hmac: MAC,
  compress: ['none'],
  serverHostKey: TARGET_HOST_KEYS,
}
