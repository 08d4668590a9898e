/**
 * Sign-ins by cookie. A token is 256 random bits; only its hash is stored, so that neither a dump of the
 * database nor a backup contains a usable token. A restart signs nobody out.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { User } from '../../model/objects.ts'
import type { SignInRepository, StoredSignIn } from '../../store/store.ts'
import {
  MAX_SIGN_INS,
  MAX_SIGN_INS_PER_USER,
  SIGN_IN_IDLE,
  SIGN_IN_LIFETIME,
  SIGN_IN_NOTED,
} from '../http/limits.ts'

type Proven = Pick<User, 'id' | 'secretRevision'>
type Details = Pick<StoredSignIn, 'hasFactor' | 'providerSession'>

const TOKEN_BYTES = 32

export class SignIns {
  readonly #stored: SignInRepository
  readonly #randomBytes: (length: number) => Uint8Array

  constructor(stored: SignInRepository, randomBytes: (length: number) => Uint8Array) {
    this.#stored = stored
    this.#randomBytes = randomBytes
  }

  /**
   * Returns a new token for a user that has just been authenticated. Removes the user's oldest one if there
   * are too many.
   */
  async begin(user: Proven, now: number, { hasFactor, providerSession }: Details = {}): Promise<string> {
    const token = Buffer.from(this.#randomBytes(TOKEN_BYTES)).toString('base64url')
    const signIn = {
      userId: user.id,
      secretRevision: user.secretRevision ?? 0,
      begin: now,
      lastUse: now,
      ...(hasFactor && { hasFactor }),
      ...(providerSession !== undefined && { providerSession }),
    }
    const expired = { begin: now - SIGN_IN_LIFETIME, lastUse: now - SIGN_IN_IDLE }
    const limits = { ofUser: MAX_SIGN_INS_PER_USER, all: MAX_SIGN_INS }
    await this.#stored.begin(hashOf(token), signIn, expired, limits)
    return token
  }

  /** Returns the sign-in of a token, unless it was idle for too long or is too old. Counts as a use. */
  async use(token: string, now: number): Promise<StoredSignIn | undefined> {
    const hash = hashOf(token)
    const signIn = await this.#stored.find(hash)
    if (!signIn) return undefined
    if (now - signIn.lastUse >= SIGN_IN_IDLE || now - signIn.begin >= SIGN_IN_LIFETIME) {
      await this.#stored.end(hash)
      return undefined
    }
    if (now - signIn.lastUse >= SIGN_IN_NOTED) await this.#stored.used(hash, now)
    return signIn
  }

  async end(token: string): Promise<void> {
    await this.#stored.end(hashOf(token))
  }
}

function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest()
}
