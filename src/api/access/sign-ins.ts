/**
 * Sign-ins by cookie. A token is 256 random bits; only its hash is stored, so that neither a dump of the
 * database nor a backup contains a usable token. A restart signs nobody out.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { Id, User } from '../../model/objects.ts'
import type { ListedSignIn, SignInRepository, StoredSignIn } from '../../store/store.ts'
import {
  MAX_SIGN_INS,
  MAX_SIGN_INS_PER_USER,
  SIGN_IN_IDLE,
  SIGN_IN_LIFETIME,
  SIGN_IN_NOTED,
} from '../http/limits.ts'

type Proven = Pick<User, 'id' | 'secretRevision'>
type Details = Pick<StoredSignIn, 'client' | 'hasFactor' | 'providerSession'>

const TOKEN_BYTES = 32
const MAX_AGENT = 200

export class SignIns {
  readonly #stored: SignInRepository
  readonly #randomBytes: (length: number) => Uint8Array

  constructor(stored: SignInRepository, randomBytes: (length: number) => Uint8Array) {
    this.#stored = stored
    this.#randomBytes = randomBytes
  }

  /**
   * Returns a new token for a user that has just been authenticated. Removes the user's oldest one if there
   * are too many. For the details see `StoredSignIn`.
   */
  async begin(
    user: Proven,
    now: number,
    { client, hasFactor, providerSession }: Details = {},
  ): Promise<string> {
    const token = Buffer.from(this.#randomBytes(TOKEN_BYTES)).toString('base64url')
    const signIn = {
      userId: user.id,
      secretRevision: user.secretRevision ?? 0,
      begin: now,
      lastUse: now,
      ...(hasFactor && { hasFactor }),
      ...(client && { client: { ...client, agent: shownAgent(client.agent) } }),
      ...(providerSession !== undefined && { providerSession }),
    }
    const expired = { begin: now - SIGN_IN_LIFETIME, lastUse: now - SIGN_IN_IDLE }
    const limits = { ofUser: MAX_SIGN_INS_PER_USER, all: MAX_SIGN_INS }
    await this.#stored.begin(hashOf(token), signIn, expired, limits)
    return token
  }

  /** Returns the sign-in of a token, unless it was idle for too long or is too old. Counts as a use. */
  async use(token: string, now: number): Promise<ListedSignIn | undefined> {
    const hash = hashOf(token)
    const signIn = await this.#stored.find(hash)
    if (!signIn) return undefined
    if (hasEnded(signIn, now)) {
      await this.#stored.end(hash)
      return undefined
    }
    if (now - signIn.lastUse >= SIGN_IN_NOTED) await this.#stored.used(hash, now)
    return signIn
  }

  /** Lists those of a user that count, the newest first. */
  async ofUser(userId: Id, now: number): Promise<ListedSignIn[]> {
    const all = await this.#stored.ofUser(userId)
    return all.filter((one) => !hasEnded(one, now)).reverse()
  }

  /** Ends one of the user's, or all; returns how many. */
  async endOfUser(userId: Id, id?: Id): Promise<number> {
    return await this.#stored.endOfUser(userId, id)
  }

  async end(token: string): Promise<void> {
    await this.#stored.end(hashOf(token))
  }
}

function hasEnded({ begin, lastUse }: StoredSignIn, now: number): boolean {
  return now - lastUse >= SIGN_IN_IDLE || now - begin >= SIGN_IN_LIFETIME
}

/** Keeps what a client calls itself short, and to one line. */
function shownAgent(text: string): string {
  return text.replaceAll(/\P{ASCII}|\p{Cc}/gu, ' ').slice(0, MAX_AGENT)
}

function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest()
}
