/** Credentials of accounts: their checks, and the texts that are sealed. */
import { Buffer } from 'node:buffer'
import ssh2 from 'ssh2'
import type { CredentialType } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'

export const MAX_PASSWORD_BYTES = 4096
export const MAX_PRIVATE_KEY_BYTES = 65_536
export const MAX_PASSPHRASE_BYTES = 1024

/** A credential of an account, which has at most one of each type. The receiver wipes it. */
export type Credential =
  | { type: 'password'; password: Secret }
  /** Password of the command for the privileged mode of network devices. */
  | { type: 'enable'; password: Secret }
  | { type: 'ssh_key'; privateKey: Secret; passphrase?: Secret }

/** A credential cannot be used; the message never contains any of it. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError'
  /** The invalid field, in the API's spelling. */
  readonly field: string

  constructor(field: string, message: string) {
    super(message)
    this.field = field
  }
}

export function wipe(credential: Credential): void {
  if (credential.type !== 'ssh_key') credential.password.wipe()
  else {
    credential.privateKey.wipe()
    credential.passphrase?.wipe()
  }
}

export function textsOf(credential: Credential): Record<string, string> {
  if (credential.type !== 'ssh_key') return { password: credential.password.revealText() }
  return {
    privateKey: credential.privateKey.revealText(),
    ...(credential.passphrase && { passphrase: credential.passphrase.revealText() }),
  }
}

export function credentialOf(type: CredentialType, texts: Partial<Record<string, string>>): Credential {
  const { password = '', privateKey = '', passphrase } = texts
  if (type !== 'ssh_key') return { type, password: Secret.of(password) }
  return {
    type,
    privateKey: Secret.of(privateKey),
    ...(passphrase !== undefined && { passphrase: Secret.of(passphrase) }),
  }
}

/** Checks that a credential can be stored and used. @throws CredentialError */
export function checkCredential(credential: Credential): void {
  if (credential.type !== 'ssh_key') {
    bounded('password', credential.password, MAX_PASSWORD_BYTES)
    return
  }
  bounded('private_key', credential.privateKey, MAX_PRIVATE_KEY_BYTES)
  if (credential.passphrase) bounded('passphrase', credential.passphrase, MAX_PASSPHRASE_BYTES)
  const passphrase = credential.passphrase && Buffer.from(credential.passphrase.reveal())
  const parsed = ssh2.utils.parseKey(credential.privateKey.reveal(), passphrase)
  if (parsed instanceof Error) {
    if (/passphrase|decrypt|integrity check/i.test(parsed.message)) {
      throw new CredentialError(
        'passphrase',
        'the private key is encrypted and the passphrase is missing or wrong',
      )
    }
    throw new CredentialError(
      'private_key',
      'expected a private key in OpenSSH or PEM form, without anything else',
    )
  }
  if (!parsed.isPrivateKey())
    throw new CredentialError('private_key', 'this is a public key: expected the private one')
  if (parsed.type === 'ssh-dss') {
    throw new CredentialError('private_key', 'DSA keys are not supported: use Ed25519, ECDSA or RSA')
  }
}

function bounded(field: string, secret: Secret, limit: number): void {
  if (secret.length === 0) throw new CredentialError(field, `${field} must not be empty`)
  if (limit < secret.length)
    throw new CredentialError(field, `${field} must not be longer than ${limit} bytes`)
}
