/** Users and persons, as far as their public keys go. */
import type { User } from '../model/objects.ts'
import type { Authorities } from './authorities.ts'
import type { OfferedKey } from './certificate.ts'
import type { Person } from './methods/method.ts'
import { isKeyOf } from './public-key.ts'
import type { Refusal } from './sign-in.ts'

export type KeyHolder = {
  /** Name that a certificate has to be for. */
  name: string
  keys: readonly string[]
  /** Why no key of theirs is accepted. */
  flaw?: Refusal | undefined
} & ({ user: User; isCertifiedHere?: boolean } | { person: Person })

/** Checks the key: a plain one must be listed; a certificate needs a valid authority. `use.user`: the name without a holder. */
export function flawOfOffered(
  holder: KeyHolder | undefined,
  offered: OfferedKey | undefined,
  key: Uint8Array,
  authorities: Pick<Authorities, 'flawOf'>,
  use: { user: string; source: string; now: number },
): Refusal | undefined {
  // Checked for unknown users too: verifying a certificate takes time, which must not reveal them.
  const ofAuthority = offered && authorities.flawOf(offered, { ...use, user: holder?.name ?? use.user })
  if (!holder) return 'unknown_user'
  if (holder.flaw) return holder.flaw
  if (!offered || (!offered.certificate && !isKeyOf(holder.keys, key))) return 'unknown_key'
  return ofAuthority
}
