/** New SSH key pairs in OpenSSH's form. */
import ssh2 from 'ssh2'

export type SshKeyType = 'ed25519' | 'ecdsa'

const MAX_ATTEMPTS = 100

/**
 * A new key pair. ssh2's generator drops a leading zero byte of an Ed25519 key, so that one in 256 is malformed:
 * each is read back before it is used.
 */
export function newSshKey(type: SshKeyType): { private: string; public: string } {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const pair =
      type === 'ed25519'
        ? ssh2.utils.generateKeyPairSync('ed25519')
        : ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 })
    const isSound = [pair.private, pair.public].every((text) => !(ssh2.utils.parseKey(text) instanceof Error))
    if (isSound) return pair
  }
  throw new Error('no sound SSH key could be made')
}
