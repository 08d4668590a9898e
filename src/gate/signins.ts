/** Who has signed in, by which token: a proxy asks once, and holds the token afterwards. */
import { randomBytes } from 'node:crypto'
import type { Audit } from '../audit/catalogue.ts'
import type { Identities } from '../identity/chain.ts'
import { LOCKOUT_LIMITS } from '../identity/lockout.ts'
import { type Login, parseLogin } from '../model/login.ts'
import type { Id } from '../model/objects.ts'
import type { AuthenticateAnswer, AuthenticateRequest, Source } from './messages.ts'

export interface SignInOptions {
  identities: Identities
  audit: Audit
}

/** Somebody who has signed in on a connection that is still there. */
export interface SignedIn {
  userId: Id
  user: string
  login: Login
  source: Source
}

export class SignIns {
  readonly #options: SignInOptions
  readonly #byToken = new Map<string, SignedIn>()

  constructor(options: SignInOptions) {
    this.#options = options
  }

  async authenticate({ protocol, source, login, proof }: AuthenticateRequest): Promise<AuthenticateAnswer> {
    const { identities, audit } = this.#options
    const parsed = parseLogin(login)
    const fields = { client_ip: source.address, client_port: source.port, protocol, method: proof.method }
    if ('malformed' in parsed) {
      await audit.record('auth.failure', { ...fields, reason: 'malformed login string' })
      return { result: 'malformed', message: parsed.malformed }
    }
    // No method here asks on, so answers are answers to nothing.
    if (proof.method === 'none' || 'answers' in proof) return { result: 'rejected' }
    const outcome = await identities.authenticate({
      user: parsed.user,
      login,
      source: source.address,
      proof,
    })
    if (outcome.result === 'key_acceptable') return { result: 'key_acceptable' }
    if (outcome.result === 'rejected') {
      // An offer of a key that is not the user's is no attempt: agents offer all they hold.
      if (proof.method !== 'publickey' || proof.signed) {
        await audit.record('auth.failure', { ...fields, user: parsed.user, reason: outcome.reason })
        if (outcome.locks) {
          await audit.record('auth.locked', {
            ...fields,
            user: parsed.user,
            reason: outcome.reason,
            duration: LOCKOUT_LIMITS.lockMs,
          })
        }
      }
      return { result: 'rejected' }
    }
    const { user } = outcome
    await audit.record('auth.success', { ...fields, user: user.userName, profile: user.profile })
    const token = randomBytes(16).toString('base64url')
    this.#byToken.set(token, { userId: user.id, user: user.userName, login: parsed, source })
    return {
      result: 'accepted',
      identity: {
        token,
        user: user.userName,
        displayName: user.displayName,
        hasTarget: parsed.target !== undefined,
      },
    }
  }

  /** Throws when a proxy shows a token that is not, or no longer, valid. */
  get(token: string): SignedIn {
    const signedIn = this.#byToken.get(token)
    if (!signedIn) throw new Error('this identity is no longer signed in')
    return signedIn
  }

  forget(token: string): void {
    this.#byToken.delete(token)
  }
}
