/**
 * Sign-ins while servers are away: by a password that one of them has accepted a short while ago, kept as a sealed hash. A
 * refusal by a server ends it, and so do a few wrong passwords, which are answered like a server that is away.
 */
import type { ExternalAuth } from '../model/external-auths.ts'
import type { User } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { OfflineProof, Store } from '../store/store.ts'
import { BusyError } from './errors.ts'
import type { HashSeal } from './hashes.ts'
import type { PasswordHasher } from './password.ts'

/** Wrong passwords after which an earlier proof counts no more. */
export const MAX_OFFLINE_TRIES = 3

export interface OfflineOptions {
  store: Pick<Store, 'offlineProofs'>
  vault: HashSeal
  passwords: Pick<PasswordHasher, 'hash' | 'verify'>
  /** Milliseconds since the epoch. */
  now: () => number
}

export class Offline {
  readonly #options: OfflineOptions

  constructor(options: OfflineOptions) {
    this.#options = options
  }

  /** Returns the hash to be kept of a password that the server has accepted, or undefined if none is kept. */
  async hashOf({ offlineS = 0 }: ExternalAuth, password: Secret): Promise<string | undefined> {
    if (offlineS === 0) return undefined
    try {
      return await this.#options.passwords.hash(password)
    } catch (error) {
      // The sign-in goes on without.
      if (error instanceof BusyError || error instanceof RangeError) return undefined
      throw error
    }
  }

  /** Keeps the hash, in place of an earlier one. */
  async keep({ id: userId, secretRevision = 0 }: User, { id }: ExternalAuth, hash: string): Promise<void> {
    const { store, vault, now } = this.#options
    const secret = Secret.of(hash)
    try {
      const place = { userId, externalAuthId: id }
      const sealed = vault.seal(placeOf(place), secret)
      await store.offlineProofs.set({ ...place, sealed, time: now(), secretRevision })
    } finally {
      secret.wipe()
    }
  }

  /** Forgets what is kept of a name that the server has refused, or wants more of. */
  async forget({ id, offlineS = 0 }: ExternalAuth, userName: string): Promise<void> {
    if (offlineS > 0) await this.#options.store.offlineProofs.forget(id, userName)
  }

  /**
   * Returns the server that has accepted the password within its time. Takes the same for a user of whom nothing is kept,
   * and for a name that is no user's. `auths`: all that could not judge.
   */
  async judge(
    user: User | undefined,
    auths: readonly ExternalAuth[],
    password: Secret,
    source: string,
  ): Promise<ExternalAuth | undefined> {
    const taking = auths.filter(({ offlineS = 0 }) => offlineS > 0)
    if (taking.length === 0) return undefined
    const { store, passwords } = this.#options
    const kept = user ? await store.offlineProofs.ofUser(user.id) : []
    const found = kept.flatMap((proof) => {
      const auth = taking.find(({ id }) => id === proof.externalAuthId)
      return user && auth && this.#isCurrent(proof, auth, user) ? [{ proof, auth }] : []
    })[0]
    // Counted first, so that simultaneous tries are no more.
    const mayTry = found && (await store.offlineProofs.countTry(found.proof, MAX_OFFLINE_TRIES))
    const hash = mayTry ? this.#open(found.proof) : undefined
    if (!(await passwords.verify(hash, password, source)) || !found) return undefined
    await store.offlineProofs.forgive(found.proof)
    return found.auth
  }

  /** A clock that was set back ends it, too. */
  #isCurrent({ time, secretRevision }: OfflineProof, { offlineS = 0 }: ExternalAuth, user: User): boolean {
    const now = this.#options.now()
    const isRecent = time <= now && now < time + offlineS * 1000
    return isRecent && secretRevision === (user.secretRevision ?? 0) && !user.isDisabled && !user.isLocked
  }

  #open(proof: OfflineProof): string {
    const secret = this.#options.vault.open(placeOf(proof), proof.sealed)
    try {
      return secret.revealText()
    } finally {
      secret.wipe()
    }
  }
}

const placeOf = ({ userId, externalAuthId }: Pick<OfflineProof, 'userId' | 'externalAuthId'>) => ({
  table: 'offline_proofs',
  id: userId,
  field: externalAuthId,
})
