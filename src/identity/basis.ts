/**
 * What somebody's being signed in rests on: who they are, by what they have proved it, and by which right they were
 * given more than that. Whatever is made of a sign-in (a session, a ticket, an invitation) keeps it, and ends when a
 * part of it is taken away.
 */
import { isFrom } from '../model/networks.ts'
import type { ApiKey, Id, User, UserAuth } from '../model/objects.ts'
import type { Feature, Level, ProfileRights } from '../model/profile-rights.ts'
import { intersection, NOTHING, reaches } from '../model/profiles.ts'
import type { Store } from '../store/store.ts'
import { mayActFor } from './acting.ts'
import type { LaterFlaw } from './authorities.ts'
import type { OfferedKey } from './certificate.ts'
import type { Identities } from './chain.ts'
import { isKeyOf } from './public-key.ts'
import { flawOfStanding, type StandingFlaw } from './standing.ts'

export interface Basis {
  /** undefined: an API key that acts for nobody. */
  userId: Id | undefined
  /** Where it was proved from. */
  address: string
  proof: BasisProof
  /** The right over the API by which it was given. */
  needs?: { feature: Feature; level: Level }
}

export type BasisProof =
  /** `revision`: of the password, which the store counts. */
  | { method: 'password'; revision: number }
  | { method: 'key'; key: OfferedKey }
  | { method: 'api_key'; id: Id; name: string }

/** The password that a user has signed in with. */
export function passwordProof({ secretRevision }: Pick<User, 'secretRevision'>): BasisProof {
  return { method: 'password', revision: secretRevision ?? 0 }
}

/** The key, or the certificate, of the sign-in; undefined: it was something else. */
export function keyOf({ proof }: Basis): OfferedKey | undefined {
  return proof.method === 'key' ? proof.key : undefined
}

/** Name of the API key that it came from; undefined: none. */
export function apiKeyOf({ proof }: Basis): string | undefined {
  return proof.method === 'api_key' ? proof.name : undefined
}

const STANDING: Readonly<Record<StandingFlaw, string>> = {
  disabled: 'the user is disabled',
  expired: 'the user has expired',
  wrong_source: 'the user may not come from this address any more',
}

const OF_KEY: Readonly<Record<LaterFlaw, string>> = {
  revoked: 'the key or certificate of the sign-in has been revoked',
  certificate_authority: 'the authority of the certificate of the sign-in is no longer one',
  certificate_validity: 'the certificate of the sign-in has expired',
}

const METHODS = { password: 'local_password', key: 'local_sshkey' } as const satisfies Record<
  string,
  UserAuth
>

export interface GroundsOptions {
  store: Pick<Store, 'users' | 'apiKeys' | 'profiles'>
  identities: Pick<Identities, 'authorities'>
  /** Milliseconds since the epoch. */
  now: () => number
  /** Hears of users and API keys that will expire, and when (milliseconds). */
  onExpiry?: (time: number) => void
}

/** Looks whether bases still hold. Reads each user, key and profile once: one is for one look. */
export class Grounds {
  readonly #options: GroundsOptions
  readonly #users = new Map<Id, Promise<User | undefined>>()
  readonly #keys = new Map<Id, Promise<ApiKey | undefined>>()
  readonly #profiles = new Map<string, Promise<ProfileRights>>()

  constructor(options: GroundsOptions) {
    this.#options = options
  }

  /** Returns why it no longer holds for somebody who is at `address`, for that person to read; undefined: it does. */
  async flawOf({ userId, address: from, proof, needs }: Basis, address: string): Promise<string | undefined> {
    if (proof.method === 'key') {
      const flaw = flawOfKey(proof.key, this.#options)
      if (flaw !== undefined) return flaw
    }
    const user = userId === undefined ? undefined : await this.user(userId)
    if (userId !== undefined && !user) return 'the user was removed'
    const { now } = this.#options
    const flaw = user && flawOfStanding(user, address, now())
    if (flaw) return STANDING[flaw]
    if (proof.method === 'api_key') return await this.#flawOfApiKey(proof.id, from, user, needs)
    if (!user) return 'nobody has signed in'
    // a certificate came from there, as its user does
    if (!isFrom(from, user.ipSource)) return STANDING.wrong_source
    if (!user.userAuths.includes(METHODS[proof.method])) {
      return 'the way in which the user has signed in was taken from them'
    }
    if (proof.method === 'password' && proof.revision !== (user.secretRevision ?? 0)) {
      return 'the password of the sign-in has been replaced'
    }
    if (
      proof.method === 'key' &&
      !proof.key.certificate &&
      !isKeyOf(user.sshPublicKeys, proof.key.key.blob)
    ) {
      return 'the key of the sign-in was taken from the user'
    }
    return flawOfRight(await this.#rightsOf(user.profile), needs)
  }

  user(id: Id): Promise<User | undefined> {
    return once(this.#users, id, (wanted) => this.#expiring(this.#options.store.users.find(wanted)))
  }

  async #expiring<T extends { expirationDate?: number | undefined }>(
    reading: Promise<T | undefined>,
  ): Promise<T | undefined> {
    const { now, onExpiry } = this.#options
    const found = await reading
    const expires = found?.expirationDate
    if (expires !== undefined && expires > now()) onExpiry?.(expires)
    return found
  }

  async #flawOfApiKey(
    id: Id,
    from: string,
    user: User | undefined,
    needs: Basis['needs'],
  ): Promise<string | undefined> {
    const { store, now } = this.#options
    const key = await once(this.#keys, id, (wanted) => this.#expiring(store.apiKeys.find(wanted)))
    if (!key) return 'the API key was removed'
    if (key.expirationDate !== undefined && key.expirationDate <= now()) return 'the API key has expired'
    if (!isFrom(from, key.ipSource)) return 'the API key may not come from its address any more'
    const own = await this.#rightsOf(key.profile)
    if (!user) return flawOfRight(own, needs)
    const rights = await this.#rightsOf(user.profile)
    if (!mayActFor(key, user, rights)) return 'the API key may not act for the user any more'
    return flawOfRight(intersection(rights, own), needs)
  }

  #rightsOf(profile: string): Promise<ProfileRights> {
    return once(
      this.#profiles,
      profile,
      async (name) => (await this.#options.store.profiles.rightsOf(name)) ?? NOTHING,
    )
  }
}

/** Returns why a key or certificate may not be used any more, whoever's it is. Asks no database. */
export function flawOfKey(
  key: OfferedKey,
  { identities, now }: Pick<GroundsOptions, 'identities' | 'now'>,
): string | undefined {
  const flaw = identities.authorities.flawSince(key, now())
  return flaw && OF_KEY[flaw]
}

function flawOfRight(rights: ProfileRights, needs: Basis['needs']): string | undefined {
  return needs && !reaches(rights[needs.feature], needs.level)
    ? `the right "${needs.feature}: ${needs.level}" was taken away`
    : undefined
}

function once<T>(known: Map<string, Promise<T>>, key: string, read: (key: string) => Promise<T>): Promise<T> {
  const found = known.get(key)
  if (found) return found
  const made = read(key)
  known.set(key, made)
  return made
}
