/**
 * Sign-ins by cookie. A token is 256 random bits; only its hash is kept, in memory: a restart signs all users
 * out, and neither a dump of the database nor a backup contains a usable token.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { Id, User } from '../../model/objects.ts'
import { MAX_SIGN_INS, MAX_SIGN_INS_PER_USER, SIGN_IN_IDLE, SIGN_IN_LIFETIME } from '../http/limits.ts'

type Proven = Pick<User, 'id' | 'secretRevision'>

interface SignIn {
  userId: Id
  /** The sign-in is invalid if the user's password has a newer revision, whichever process set it. */
  secretRevision: number
  begin: number
  lastUse: number
}

const TOKEN_BYTES = 32

export class SignIns {
  /** By hash, in the order of creation. */
  readonly #signIns = new Map<string, SignIn>()
  readonly #randomBytes: (length: number) => Uint8Array

  constructor(randomBytes: (length: number) => Uint8Array) {
    this.#randomBytes = randomBytes
  }

  /**
   * Returns a new token for a user that has just been authenticated. Removes the user's oldest one if there
   * are too many.
   */
  begin(user: Proven, now: number): string {
    this.#makeRoom(user.id, now)
    const token = Buffer.from(this.#randomBytes(TOKEN_BYTES)).toString('base64url')
    const signIn = { userId: user.id, secretRevision: user.secretRevision ?? 0, begin: now, lastUse: now }
    this.#signIns.set(hashOf(token), signIn)
    return token
  }

  /** Returns the sign-in of a token, unless it was idle for too long or is too old. Counts as a use. */
  use(token: string, now: number): Readonly<SignIn> | undefined {
    const key = hashOf(token)
    const signIn = this.#signIns.get(key)
    if (!signIn) return undefined
    if (isOver(signIn, now)) {
      this.#signIns.delete(key)
      return undefined
    }
    signIn.lastUse = now
    return signIn
  }

  end(token: string): void {
    this.#signIns.delete(hashOf(token))
  }

  #makeRoom(userId: Id, now: number): void {
    let own = 0
    let oldest: string | undefined
    for (const [key, signIn] of this.#signIns) {
      if (isOver(signIn, now)) this.#signIns.delete(key)
      else if (signIn.userId === userId) {
        oldest ??= key
        own += 1
      }
    }
    if (own >= MAX_SIGN_INS_PER_USER && oldest !== undefined) this.#signIns.delete(oldest)
    else if (this.#signIns.size >= MAX_SIGN_INS) {
      const first = this.#signIns.keys().next()
      if (!first.done) this.#signIns.delete(first.value)
    }
  }
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64')
}

function isOver(signIn: SignIn, now: number): boolean {
  return now - signIn.lastUse >= SIGN_IN_IDLE || now - signIn.begin >= SIGN_IN_LIFETIME
}
