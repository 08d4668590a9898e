/** `credentials` in bodies: the write-only secrets of an account. */
import { type Static, Type } from 'typebox'
import { Secret } from '../../model/secret.ts'
import {
  type Credential,
  CredentialError,
  checkCredential,
  MAX_PASSPHRASE_BYTES,
  MAX_PASSWORD_BYTES,
  MAX_PRIVATE_KEY_BYTES,
  wipe,
} from '../../vault/credentials.ts'
import { ApiError, type ErrorDetail } from '../http/errors.ts'
import { exact } from '../schema/fields.ts'

const password = exact({
  type: Type.Literal('password'),
  password: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_BYTES }),
})
const enable = exact({
  type: Type.Literal('enable', { description: "network gear's second password, for its privileged mode" }),
  password: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_BYTES }),
})
const sshKey = exact({
  type: Type.Literal('ssh_key'),
  private_key: Type.String({ minLength: 1, maxLength: MAX_PRIVATE_KEY_BYTES, description: 'OpenSSH or PEM' }),
  passphrase: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_PASSPHRASE_BYTES })),
})

export const credentialsIn = Type.Array(Type.Union([password, enable, sshKey]), {
  maxItems: 3,
  description: 'secrets, one of each type at most; an update replaces them all. They never come back',
})

/** Returns checked credentials for the vault. @throws ApiError `invalid_field` that names every bad one */
export function credentialsOf(body: Static<typeof credentialsIn>): Credential[] {
  const details: ErrorDetail[] = []
  const credentials = body.map(credentialOf)
  for (const [index, credential] of credentials.entries()) {
    if (credentials.findIndex((other) => other.type === credential.type) !== index) {
      details.push({
        field: `credentials/${index}/type`,
        message: `there are two of type ${credential.type}`,
      })
    }
    try {
      checkCredential(credential)
    } catch (error) {
      if (!(error instanceof CredentialError)) throw error
      details.push({ field: `credentials/${index}/${error.field}`, message: error.message })
    }
  }
  if (details.length > 0) throw new ApiError('invalid_field', details)
  return credentials
}

function credentialOf(credential: Static<typeof credentialsIn>[number]): Credential {
  const { type } = credential
  if (type !== 'ssh_key') return { type, password: Secret.of(credential.password) }
  return {
    type: 'ssh_key',
    privateKey: Secret.of(credential.private_key),
    ...(credential.passphrase !== undefined && { passphrase: Secret.of(credential.passphrase) }),
  }
}

export function wipeAll(credentials: readonly Credential[]): void {
  for (const credential of credentials) wipe(credential)
}
