/**
 * The basis of a sign-in: the user, the proof, and the API right it used, if any. Each session, ticket or
 * invitation that results from a sign-in keeps it, and ends when any part of it is removed.
 */
import { isFrom } from '../model/networks.ts'
import type { AccountingClass, ApiKey, Id, User, UserAuth } from '../model/objects.ts'
import type { Feature, Level, ProfileRights } from '../model/profile-rights.ts'
import { intersection, NOTHING, reaches } from '../model/profiles.ts'
import type { ProviderSession, Store } from '../store/store.ts'
import { mayActFor } from './acting.ts'
import type { Authorities, LaterFlaw } from './authorities.ts'
import { endOf, type OfferedKey } from './certificate.ts'
import type { Certificate } from './certificate-parts.ts'
import { flawOfOwn } from './own-certificate.ts'
import { fingerprintOf, isKeyOf } from './public-key.ts'
import { flawOfStanding, type StandingFlaw } from './standing.ts'

export interface Basis {
  /** Undefined for an API key that acts for no user. */
  userId: Id | undefined
  /** Address from which the proof came. */
  address: string
  proof: BasisProof
  /** Class attributes of the servers that judged, for the accounting of sessions. */
  classes?: readonly AccountingClass[]
  /** API right that was needed. */
  needs?: { feature: Feature; level: Level }
}

/** Ends of a sign-in that others have judged. */
export interface ProofBounds {
  /** Id of the session at the provider. */
  providerSession?: Id
  /** When the access token ends, in milliseconds since the epoch. */
  ends?: number
}

export type BasisProof =
  /**
   * `revision`: number of the password's revision, counted by the store. `by`: names of the external authentications that
   * have judged it instead.
   */
  | ({ method: 'password'; revision: number; by?: readonly string[] } & ProofBounds)
  | { method: 'key'; key: OfferedKey }
  | { method: 'api_key'; id: Id; name: string }

/** Returns the proof for a sign-in with the user's current password, or with one that servers have judged. */
export function passwordProof(
  { secretRevision }: Pick<User, 'secretRevision'>,
  by?: readonly string[],
  { providerSession, ends }: ProofBounds = {},
): BasisProof {
  return {
    method: 'password',
    revision: secretRevision ?? 0,
    ...(by && { by }),
    ...(providerSession !== undefined && { providerSession }),
    ...(ends !== undefined && { ends }),
  }
}

/**
 * Returns the proof of an earlier sign-in by password of which only the revision is known, or undefined if the user may
 * sign in by no password any more.
 */
export function earlierProof(user: User, revision: number, bounds: ProofBounds = {}): BasisProof | undefined {
  const own = { method: 'password', revision, ...bounds } as const
  if (mayUse(user, own)) return own
  const by = user.userAuths.filter((name) => name !== METHODS.key)
  return by.length === 0 ? undefined : { ...own, by: by.slice(0, 1) }
}

/** Whether the user may sign in with what the proof rests on: for a person, their domain's servers have said so. */
export function mayUse(
  { authDomainId, userAuths }: Pick<User, 'authDomainId' | 'userAuths'>,
  proof: Extract<BasisProof, { method: 'password' | 'key' }>,
): boolean {
  if (authDomainId !== undefined) return true
  const names: readonly string[] = userAuths
  if (proof.method === 'password' && proof.by) return proof.by.every((name) => names.includes(name))
  return names.includes(METHODS[proof.method])
}

/** Returns the key or certificate of the sign-in, or undefined if it used another method. */
export function keyOf({ proof }: Basis): OfferedKey | undefined {
  return proof.method === 'key' ? proof.key : undefined
}

/** Names the first factor of a sign-in: a code that was right beside one counts beside no other. */
export function firstFactorOf(proof: BasisProof): string {
  switch (proof.method) {
    case 'key':
      return `key ${fingerprintOf(proof.key.key.blob)}`
    case 'api_key':
      return `api_key ${proof.id}`
    default:
      return `password ${proof.by?.join(' ') ?? ''}`.trim()
  }
}

/** Returns the name of the API key that signed in, or undefined if none did. */
export function apiKeyOf({ proof }: Basis): string | undefined {
  return proof.method === 'api_key' ? proof.name : undefined
}

const STANDING: Readonly<Record<StandingFlaw, string>> = {
  disabled: 'the user is disabled',
  user_locked: 'the user is locked',
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
  store: Pick<Store, 'users' | 'apiKeys' | 'profiles' | 'providerSessions' | 'userCertificates'>
  identities: { readonly authorities: Authorities }
  /** Milliseconds since the epoch. */
  now: () => number
  /**
   * Called with the time, in milliseconds since the epoch, at which a basis that holds ends by itself; with Infinity
   * for one without an end.
   */
  onEnd?: (basis: Basis, time: number) => void
}

/** Checks whether bases still hold. Reads each user, key and profile once: use one object per check. */
export class Grounds {
  readonly #options: GroundsOptions
  readonly #users = new Map<Id, Promise<User | undefined>>()
  readonly #keys = new Map<Id, Promise<ApiKey | undefined>>()
  readonly #profiles = new Map<string, Promise<ProfileRights>>()
  readonly #sessions = new Map<Id, Promise<ProviderSession | undefined>>()
  readonly #flaws = new Map<Basis, { address: string; flaw: Promise<string | undefined> }>()

  constructor(options: GroundsOptions) {
    this.#options = options
  }

  /** Reads the users of these bases together, for `flawOf`. */
  async prepare(bases: readonly Pick<Basis, 'userId'>[]): Promise<void> {
    const ids = new Set(bases.flatMap(({ userId }) => (userId === undefined ? [] : [userId])))
    const unknown = [...ids].filter((id) => !this.#users.has(id))
    const users = new Map((await this.#options.store.users.some(unknown)).map((user) => [user.id, user]))
    for (const id of unknown) this.#users.set(id, Promise.resolve(users.get(id)))
  }

  /**
   * Returns why the basis no longer holds for a client at `address`, as text for the user, or undefined if it
   * does.
   */
  flawOf(basis: Basis, address: string): Promise<string | undefined> {
    const known = this.#flaws.get(basis)
    // A session and its connection have one basis and one address.
    if (known?.address === address) return known.flaw
    const flaw = this.#judged(basis, address)
    this.#flaws.set(basis, { address, flaw })
    return flaw
  }

  async #judged(basis: Basis, address: string): Promise<string | undefined> {
    const flaw = await this.#flawOf(basis, address)
    const { onEnd } = this.#options
    if (flaw !== undefined || !onEnd) return flaw
    onEnd(basis, await this.#endOf(basis))
    return undefined
  }

  async #endOf({ userId, proof }: Basis): Promise<number> {
    const user = userId === undefined ? undefined : await this.user(userId)
    const key = proof.method === 'api_key' ? await this.#apiKey(proof.id) : undefined
    const ends = [user?.expirationDate, key?.expirationDate]
    if (proof.method === 'key' && proof.key.certificate) ends.push(endOf(proof.key.certificate))
    if (proof.method === 'password') ends.push(proof.ends, (await this.#providerSession(proof))?.ends)
    return Math.min(...ends.map((end) => end ?? Number.POSITIVE_INFINITY))
  }

  async #flawOf(
    { userId, address: from, proof, needs }: Basis,
    address: string,
  ): Promise<string | undefined> {
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
    // The address of the proof must still be allowed, not just the client's.
    if (!isFrom(from, user.ipSource)) return STANDING.wrong_source
    const made = this.#madeHere(proof)
    if (made) {
      const flaw = flawOfOwn(await this.#options.store.userCertificates.find(made.serial), made, user)
      if (flaw) return 'the certificate of the sign-in was withdrawn'
    } else if (!mayUse(user, proof)) {
      return 'the user may no longer use the method of the sign-in'
    }
    if (proof.method === 'password' && proof.revision !== (user.secretRevision ?? 0)) {
      return 'the password of the sign-in has been replaced'
    }
    if (
      proof.method === 'key' &&
      !proof.key.certificate &&
      !isKeyOf(user.sshPublicKeys, proof.key.key.blob)
    ) {
      return 'the key of the sign-in was removed from the user'
    }
    const end = await this.#flawOfBounds(proof)
    return end ?? flawOfRight(await this.#rightsOf(user.profile), needs)
  }

  async #flawOfBounds(proof: BasisProof): Promise<string | undefined> {
    if (proof.method !== 'password') return undefined
    const now = this.#options.now()
    if (proof.ends !== undefined && proof.ends <= now) return 'the access token of the sign-in has ended'
    if (proof.providerSession === undefined) return undefined
    const session = await this.#providerSession(proof)
    if (!session) return 'the provider has ended the sign-in'
    return session.ends <= now ? 'the sign-in at the provider has ended' : undefined
  }

  async #providerSession({ providerSession: id }: ProofBounds): Promise<ProviderSession | undefined> {
    if (id === undefined) return undefined
    return await once(this.#sessions, id, (wanted) => this.#options.store.providerSessions.find(wanted))
  }

  /**
   * Returns why the user may not hold what needs that right, from wherever it was asked for, or undefined if it may.
   * `apiKeyId`: the key that asked in the user's name.
   */
  async flawOfHolder(id: Id, needs: NonNullable<Basis['needs']>, apiKeyId?: Id): Promise<string | undefined> {
    const user = await this.user(id)
    if (!user) return 'the user was removed'
    const flaw = flawOfStanding({ ...user, ipSource: [] }, '', this.#options.now())
    if (flaw) return STANDING[flaw]
    if (apiKeyId !== undefined) return await this.#flawOfApiKey(apiKeyId, undefined, user, needs)
    return flawOfRight(await this.#rightsOf(user.profile), needs)
  }

  /** Returns the certificate of the proof if the bastion's own authority has made it. */
  #madeHere(proof: BasisProof): Certificate | undefined {
    const certificate = proof.method === 'key' ? proof.key.certificate : undefined
    return certificate && this.#options.identities.authorities.isOwn(certificate) ? certificate : undefined
  }

  user(id: Id): Promise<User | undefined> {
    return once(this.#users, id, (wanted) => this.#options.store.users.find(wanted))
  }

  #apiKey(id: Id): Promise<ApiKey | undefined> {
    return once(this.#keys, id, (wanted) => this.#options.store.apiKeys.find(wanted))
  }

  async #flawOfApiKey(
    id: Id,
    from: string | undefined,
    user: User | undefined,
    needs: Basis['needs'],
  ): Promise<string | undefined> {
    const key = await this.#apiKey(id)
    if (!key) return 'the API key was removed'
    const { now } = this.#options
    if (key.expirationDate !== undefined && key.expirationDate <= now()) return 'the API key has expired'
    if (from !== undefined && !isFrom(from, key.ipSource))
      return 'the API key may not come from its address any more'
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

/** Returns why a key or certificate may no longer be used by any user. Reads no database. */
function flawOfKey(
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
