/** The write-only field `ca_private_key` of domains: key of the authority that certifies their sessions. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { type Static, Type } from 'typebox'
import type { Domain } from '../../model/objects.ts'
import { Secret } from '../../model/secret.ts'
import { readAuthorityKey } from '../../vault/authority.ts'
import { CredentialError, MAX_PASSPHRASE_BYTES, MAX_PRIVATE_KEY_BYTES } from '../../vault/credentials.ts'
import type { ResourceContext } from '../access/context.ts'
import { fieldError } from '../http/errors.ts'
import { exact } from '../schema/fields.ts'
import type { PlannedEvent } from './resource.ts'

export const AUTHORITY_SECRETS = ['ca_private_key', 'ca_passphrase'] as const

const AuthorityIn = exact({
  ca_private_key: Type.Optional(
    Type.Union([Type.String({ minLength: 1, maxLength: MAX_PRIVATE_KEY_BYTES }), Type.Null()], {
      description:
        "OpenSSH or PEM (Ed25519, ECDSA, RSA): each session with an account of the domain signs in by a certificate of this authority, principal: the account's login. null: no certificates any more. It never comes back",
    }),
  ),
  ca_passphrase: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_PASSPHRASE_BYTES,
      description: 'of `ca_private_key`, which it goes with; it is not kept',
    }),
  ),
})
export const authorityIn = AuthorityIn.properties

export const authorityOut = {
  ca_public_key: Type.Union([Type.String(), Type.Null()], {
    description: "for the targets' TrustedUserCAKeys; null: sessions get no certificates",
  }),
}

/** A change of a domain's authority. */
export interface AuthorityChange {
  /** Returns the event for the audit, for a domain that exists. */
  event(objectType: string, object: string): PlannedEvent
  /** Makes the change; returns the domain after it. */
  apply(domain: Domain): Promise<Domain>
}

/** Returns the change, or undefined if the body has no `ca_private_key`. @throws ApiError `invalid_field` */
export function authorityChange(
  { deps: { store, vault } }: ResourceContext,
  body: Static<typeof AuthorityIn>,
): AuthorityChange | undefined {
  const { ca_private_key: text, ca_passphrase: passphrase } = body
  if (passphrase !== undefined && typeof text !== 'string')
    throw fieldError('invalid_field', 'ca_passphrase', 'a passphrase goes with ca_private_key')
  if (text === undefined) return undefined
  const key = text === null ? undefined : keyOf(text, passphrase)
  const reason = key ? `authority ${fingerprintOf(key.publicKey)}` : 'it has no authority any more'
  return {
    event: (objectType, object) => ({
      code: 'secret.change',
      fields: { object_type: objectType, object, reason },
    }),
    async apply(domain) {
      try {
        await vault.setAuthority(domain.id, key)
      } finally {
        key?.pkcs8.wipe()
      }
      return (await store.domains.find(domain.id)) ?? domain
    },
  }
}

function keyOf(text: string, passphrase: string | undefined): { pkcs8: Secret; publicKey: string } {
  const given = {
    privateKey: Secret.of(text),
    ...(passphrase !== undefined && { passphrase: Secret.of(passphrase) }),
  }
  try {
    return readAuthorityKey(given)
  } catch (error) {
    if (error instanceof CredentialError) throw fieldError('invalid_field', error.field, error.message)
    throw error
  } finally {
    given.privateKey.wipe()
    given.passphrase?.wipe()
  }
}

function fingerprintOf(publicKey: string): string {
  const blob = Buffer.from(publicKey.split(' ')[1] ?? '', 'base64')
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replaceAll('=', '')}`
}
