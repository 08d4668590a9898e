/** Fields of the events of sign-ins. */
import type { FieldsOf } from '../audit/events/catalogue.ts'
import { apiKeyOf } from '../identity/basis.ts'
import type { OfferedKey } from '../identity/certificate.ts'
import { fingerprintOf } from '../identity/public-key.ts'
import type { SignedIn } from './signed-in.ts'

/** Returns the fields that identify the user. */
export function whoFields({ user, source, basis }: SignedIn): FieldsOf<'session.denied'> {
  const apiKey = apiKeyOf(basis)
  return {
    user,
    ...(apiKey !== undefined && { api_key: apiKey }),
    client_ip: source.address,
    client_port: source.port,
  }
}

/** Returns the key's fields; for a certificate also its key id, serial, and the authority's fingerprint. */
export function keyFields({ key, certificate }: OfferedKey): FieldsOf<'auth.success'> {
  const digest = fingerprintOf(key.blob)
  if (!certificate) return { digest }
  const { keyId, serial, authority } = certificate
  return {
    digest,
    object_type: 'certificate',
    object: `${keyId.toString('utf8')} (serial ${serial}, CA ${fingerprintOf(authority.blob)})`,
  }
}

/** Names the servers that have judged a sign-in, or could not. */
export function serverFields(names: readonly string[]): FieldsOf<'auth.unavailable'> {
  return { object_type: 'external authentication', object: names.join(', ') }
}
