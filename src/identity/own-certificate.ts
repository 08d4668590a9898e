/**
 * Certificates that the bastion's own authority has made for the key of a user that had signed in. Its row in the store
 * is what makes one valid: without it, for another key, or after another password, it proves nothing.
 */
import { nameKey } from '../model/names.ts'
import type { User } from '../model/objects.ts'
import type { Store, UserCertificate } from '../store/store.ts'
import type { Certificate } from './certificate-parts.ts'
import type { KeyHolder } from './key-holder.ts'
import type { Place } from './places.ts'
import { fingerprintOf } from './public-key.ts'
import type { Refusal } from './sign-in.ts'
import { flawOfStanding } from './standing.ts'
import type { Step } from './steps.ts'

export type OwnCertificates = Pick<Store, 'userCertificates' | 'users'>

/** Returns why the row does not make the certificate valid for the user, or undefined if it does. */
export function flawOfOwn(
  row: UserCertificate | undefined,
  { key }: Pick<Certificate, 'key'>,
  user: Pick<User, 'id' | 'secretRevision'>,
): Extract<Refusal, 'withdrawn_certificate'> | undefined {
  const isItsOwn =
    row?.userId === user.id &&
    row.secretRevision === (user.secretRevision ?? 0) &&
    row.fingerprint === fingerprintOf(key.blob)
  return isItsOwn ? undefined : 'withdrawn_certificate'
}

/** Finds the user of a certificate made here: the name has to stand for the same one. */
export async function holderOfOwn(
  { userCertificates, users }: OwnCertificates,
  certificate: Certificate,
  { local, domain, name }: Place,
  { source, now }: { source: string; now: number },
): Promise<Step<KeyHolder>> {
  const row = await userCertificates.find(certificate.serial)
  const user = row && (await users.find(row.userId))
  const isNamed =
    user &&
    (local
      ? user.id === local.id
      : user.authDomainId === domain?.id && nameKey(user.userName) === nameKey(name))
  if (!isNamed) return { result: 'rejected', reason: 'withdrawn_certificate' }
  const flaw = flawOfOwn(row, certificate, user) ?? flawOfStanding(user, source, now)
  return {
    result: 'accepted',
    value: { name: user.userName, keys: [], flaw, user, isCertifiedHere: true },
  }
}
