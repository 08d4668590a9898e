/**
 * Sign-ins of native clients that wait for their person in a browser. One is found by the person that it is for, and by
 * nobody else, so that a guessed code opens nothing. Each lives as long as the dialogue of its client, which also bounds
 * their number.
 */
import type { AuthDomain } from '../../model/external-auths.ts'
import { nameKey } from '../../model/names.ts'
import type { Id, User } from '../../model/objects.ts'
import { MAX_DIALOGUES } from '../dialogues.ts'
import { newCheck, newCode } from './codes.ts'

/** A client's request. */
export interface Asking {
  /** Domain of the person. */
  domain: AuthDomain
  /** `NAME@DOMAIN`. */
  name: string
  protocol: string
  /** The client's address. */
  source: string
  /** The target that the login string names, if it names one. */
  target?: string
}

/** A person that is signed in in a browser. */
export interface Confirming {
  user: Pick<User, 'id' | 'userName' | 'authDomainId'>
  /** Id of the session at the provider. */
  providerSession?: Id
}

export type Verdict =
  | ({ result: 'confirmed' } & Omit<Confirming, 'user'> & { userId: Id })
  | { result: 'refused' | 'ended' }

/** The client's side of a waiting sign-in. */
export interface Waiting {
  code: string
  check: string
  /** Resolves once it is confirmed, refused or closed. */
  decided: Promise<void>
  verdict(): Verdict
  close(): void
}

/** The browser's side. */
export interface ShownWaiting extends Asking {
  check: string
}

interface Kept extends Asking {
  check: string
  decide: (verdict: Verdict) => void
}

export class BrowserSignIns {
  readonly #waiting = new Map<string, Kept>()
  readonly #randomBytes: (length: number) => Uint8Array

  constructor(randomBytes: (length: number) => Uint8Array) {
    this.#randomBytes = randomBytes
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Returns undefined if too many wait. */
  open(asking: Asking): Waiting | undefined {
    if (MAX_DIALOGUES < this.#waiting.size) return undefined
    const code = newCode(this.#randomBytes)
    if (this.#waiting.has(code)) return undefined
    const check = newCheck(this.#randomBytes)
    let verdict: Verdict = { result: 'ended' }
    const { promise: decided, resolve } = Promise.withResolvers<void>()
    const decide = (given: Verdict) => {
      if (!this.#waiting.delete(code)) return
      verdict = given
      resolve()
    }
    this.#waiting.set(code, { ...asking, check, decide })
    return { code, check, decided, verdict: () => verdict, close: () => decide({ result: 'ended' }) }
  }

  /** Returns the sign-in that waits under the code for this user. */
  find(code: string, user: Confirming['user']): ShownWaiting | undefined {
    const kept = this.#of(code, user)
    if (!kept) return undefined
    const { decide: _, ...shown } = kept
    return shown
  }

  /** Lets the client in; false if it has gone. */
  confirm(code: string, { user, ...proof }: Confirming): boolean {
    const kept = this.#of(code, user)
    kept?.decide({ result: 'confirmed', userId: user.id, ...proof })
    return kept !== undefined
  }

  /** Turns the client away; false if it has gone. */
  refuse(code: string, user: Confirming['user']): boolean {
    const kept = this.#of(code, user)
    kept?.decide({ result: 'refused' })
    return kept !== undefined
  }

  #of(code: string, { authDomainId, userName }: Confirming['user']): Kept | undefined {
    const kept = this.#waiting.get(code)
    const isTheirs = kept?.domain.id === authDomainId && nameKey(kept?.name ?? '') === nameKey(userName)
    return isTheirs ? kept : undefined
  }
}
