/** Bases and grounds of sign-ins in tests. */

import { Authorities } from '../../src/identity/authorities.ts'
import { type Basis, Grounds, passwordProof } from '../../src/identity/basis.ts'
import type { User } from '../../src/model/objects.ts'
import type { Store } from '../../src/store/store.ts'

/** Returns the basis of a sign-in by password from that address. */
export function byPassword(user: User, address = '192.0.2.7'): Basis {
  return { userId: user.id, address, proof: passwordProof(user) }
}

/** Makes grounds without authorities of certificates. */
export function groundsOn(
  store: Pick<Store, 'users' | 'apiKeys' | 'profiles' | 'providerSessions' | 'userCertificates'>,
  now: () => number = Date.now,
): () => Grounds {
  const identities = { authorities: new Authorities() }
  return () => new Grounds({ store, identities, now })
}
