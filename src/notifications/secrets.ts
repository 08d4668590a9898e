/** Secrets of notifications, sealed for their notification and their name. */
import type { Id } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import type { Vault } from '../vault/vault.ts'

const placeOf = (id: Id, name: string) => ({ table: 'notification_secrets', id, field: name })

export function sealNotification(
  vault: Pick<Vault, 'seal'>,
  id: Id,
  name: string,
  secret: Secret,
): Uint8Array {
  return vault.seal(placeOf(id, name), secret)
}

/** @throws UnsealError if it was altered, or belongs to another notification */
export function openNotification(
  vault: Pick<Vault, 'open'>,
  id: Id,
  name: string,
  sealed: Uint8Array,
): Secret {
  return vault.open(placeOf(id, name), sealed)
}
