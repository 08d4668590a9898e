/** Users who have proved their identity, and are prompted for more before the sign-in succeeds. */
import type {
  AnswersProof,
  AuthenticateAnswer,
  LogonQuestion,
  ReasonQuestion,
  Source,
} from '../contract/gate.ts'
import { reasonFlaw } from '../model/approvals.ts'
import { Secret } from '../model/secret.ts'
import { askedAgain, challengeOf, logonOf, wipe } from './logons.ts'
import { reasonChallengeOf, reasonOf } from './reasons.ts'
import { newToken, type SignedIn } from './signed-in.ts'

/** Limit of challenges that wait for their answers; fronts limit those of their clients far below. */
export const MAX_CHALLENGES = 10_000

/** Credentials at the target; or a reason, and those credentials next. */
type Question = { logon: LogonQuestion } | { reason: ReasonQuestion; next?: LogonQuestion }

interface Asked {
  signedIn: SignedIn
  displayName: string
  /** Login string as received: answers under another one are rejected. */
  login: string
  question: Question
}

export class AskedQuestions {
  readonly #asked = new Map<string, Asked>()

  get all(): ReadonlyMap<string, Asked> {
    return this.#asked
  }

  /** Returns the challenge. */
  ask(asked: Asked): AuthenticateAnswer & { result: 'challenge' } {
    const [oldest] = this.#asked.keys()
    if (this.#asked.size >= MAX_CHALLENGES && oldest !== undefined) this.forget(oldest)
    const id = newToken()
    this.#asked.set(id, asked)
    const { question } = asked
    const challenge =
      'logon' in question ? challengeOf(id, question.logon) : reasonChallengeOf(id, question.reason)
    return { result: 'challenge', challenge }
  }

  /**
   * Handles the answers to a challenge: once, and only on the connection that got it. Returns the user once nothing
   * more is asked.
   */
  answered(
    { challenge, answers }: AnswersProof,
    login: string,
    source: Source,
  ): AuthenticateAnswer | Pick<Asked, 'signedIn' | 'displayName'> {
    const asked = this.#asked.get(challenge)
    this.#asked.delete(challenge)
    const from = asked?.signedIn.source
    if (!asked || asked.login !== login || from?.address !== source.address || from.port !== source.port) {
      return { result: 'rejected' }
    }
    const { signedIn, question } = asked
    if ('reason' in question) {
      const reason = reasonOf(answers, question.reason)
      const flaw = reasonFlaw(reason, question.reason)
      if (flaw !== undefined)
        return this.ask({ ...asked, question: { ...question, reason: { ...question.reason, flaw } } })
      signedIn.reason = reason
      return question.next ? this.ask({ ...asked, question: { logon: question.next } }) : asked
    }
    const logon = logonOf(answers, question.logon)
    const again = askedAgain(question.logon, logon)
    if (again) return this.ask({ ...asked, question: { logon: again } })
    signedIn.kept.answered = {
      ...(logon.login !== undefined && { login: logon.login }),
      password: Secret.of(logon.password),
    }
    return asked
  }

  /** Removes a challenge that will not be answered. */
  forget(id: string): void {
    const asked = this.#asked.get(id)
    if (asked) wipe(asked.signedIn.kept)
    this.#asked.delete(id)
  }
}
