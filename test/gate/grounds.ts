/** What sign-ins of tests rest on. */

import { Authorities } from '../../src/identity/authorities.ts'
import { type Basis, Grounds, passwordProof } from '../../src/identity/basis.ts'
import type { User } from '../../src/model/objects.ts'
import type { Store } from '../../src/store/store.ts'

/** By their password, from there. */
export function byPassword(user: User, address = '192.0.2.7'): Basis {
  return { userId: user.id, address, proof: passwordProof(user) }
}

/** Without authorities of certificates. */
export function groundsOn(
  store: Pick<Store, 'users' | 'apiKeys' | 'profiles'>,
  now: () => number = Date.now,
): () => Grounds {
  const identities = { authorities: new Authorities() }
  return () => new Grounds({ store, identities, now })
}
