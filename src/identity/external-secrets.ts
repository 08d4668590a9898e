/** Secrets of the servers that judge sign-ins, sealed for their server and their name. */
import type { Id } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import type { HashSeal } from './hashes.ts'

const placeOf = (id: Id, name: string) => ({ table: 'external_auth_secrets', id, field: name })

export function sealExternal(
  vault: Pick<HashSeal, 'seal'>,
  id: Id,
  name: string,
  secret: Secret,
): Uint8Array {
  return vault.seal(placeOf(id, name), secret)
}

/** @throws UnsealError if it was altered, or belongs to another server or name */
export function openExternal(
  vault: Pick<HashSeal, 'open'>,
  id: Id,
  name: string,
  sealed: Uint8Array,
): Secret {
  return vault.open(placeOf(id, name), sealed)
}
