/** New SSH key pairs in OpenSSH's form. */
import ssh2 from 'ssh2'

export type SshKeyType = 'ed25519' | 'ecdsa' | 'rsa'

/** NIST SP 800-57 1, 5.6.1: as strong as AES-128. */
const RSA_BITS = 3072

const MAX_ATTEMPTS = 100

/**
 * Makes a new key pair. ssh2's generator drops a leading zero byte of an Ed25519 key, so that one in 256 is
 * malformed: each is parsed before it is used.
 */
export function newSshKey(type: SshKeyType): { private: string; public: string } {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const pair = make(type)
    const isSound = [pair.private, pair.public].every((text) => !(ssh2.utils.parseKey(text) instanceof Error))
    if (isSound) return pair
  }
  throw new Error('no valid SSH key could be generated')
}

function make(type: SshKeyType): { private: string; public: string } {
  switch (type) {
    case 'ed25519':
      return ssh2.utils.generateKeyPairSync('ed25519')
    case 'ecdsa':
      return ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 })
    case 'rsa':
      return ssh2.utils.generateKeyPairSync('rsa', { bits: RSA_BITS })
  }
}

/**
 * Returns the public line, type and base64, of a private key in OpenSSH's form.
 * @throws Error if it is not one, or needs a passphrase
 */
export function publicLine(privateKey: string): string {
  const parsed = ssh2.utils.parseKey(privateKey)
  if (parsed instanceof Error) throw parsed
  return `${parsed.type} ${parsed.getPublicSSH().toString('base64')}`
}
