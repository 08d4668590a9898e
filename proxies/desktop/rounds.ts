/**
 * The gate's questions after the first proof, on drawn forms: second factors, and whatever a server of the
 * sign-in asks. All decisions are the gate's.
 */
import {
  type AuthenticateRequest,
  type Challenge,
  type Gate,
  type Identity,
  WAIT_MS,
} from '../../src/contract/gate.ts'
import { MAX_AUTH_TRIES } from '../session/limits.ts'
import { challengeForm } from './screens/form.ts'
import type { OwnDisplay } from './target-choice.ts'

type Proof = AuthenticateRequest['proof']

export interface RoundsOptions extends Pick<AuthenticateRequest, 'protocol' | 'source'> {
  gate: Pick<Gate, 'authenticate' | 'leave'>
  /** The bastion's name on its screens. */
  bastion: string
  /** Returns the bastion's own desktop, created on first use. */
  display: () => OwnDisplay
  /** Called when the connection may stay that many milliseconds longer without a sign-in. */
  onWaiting: (milliseconds: number) => void
}

/** `left`: the user cancelled. `refused`: a text for the user. */
export type Verdict = { identity: Identity } | { refused: string } | 'left'

const TOO_MANY = 'too many failed attempts, try again with a new connection'

export class Rounds {
  readonly #options: RoundsOptions
  readonly #rejected: string
  #tries = 0
  /** The challenge that waits for the user's answer. */
  #pending: Challenge | undefined
  #isGone = false

  /** `rejected`: the text for wrong proofs of every kind. */
  constructor(options: RoundsOptions, rejected: string) {
    this.#options = options
    this.#rejected = rejected
  }

  /** The text if no proof may be tried any more on this connection. */
  get spent(): string | undefined {
    return this.#tries < MAX_AUTH_TRIES ? undefined : TOO_MANY
  }

  /** Sends the person of the name to a browser, where its domain wants that; returns undefined elsewhere. */
  async begin(login: string): Promise<Verdict | undefined> {
    const { gate, source, protocol } = this.#options
    const answer = await gate.authenticate({ protocol, source, login, proof: { method: 'browser' } })
    return answer.result === 'challenge' ? await this.answer(login, answer.challenge) : undefined
  }

  /** Shows a first proof to the gate, and goes through its questions. Rejects as the gate does. */
  async prove(login: string, proof: Proof): Promise<Verdict> {
    const { gate, source, protocol } = this.#options
    this.#tries++
    const answer = await gate.authenticate({ protocol, source, login, proof })
    switch (answer.result) {
      case 'accepted':
        return { identity: answer.identity }
      case 'malformed':
      case 'unavailable':
        return { refused: answer.message }
      case 'challenge':
        return await this.answer(login, answer.challenge)
      default:
        return { refused: this.#rejected }
    }
  }

  /**
   * Goes through the gate's questions from this one on. Rejects as the gate does. May stay pending after the
   * connection has closed.
   */
  async answer(login: string, challenge: Challenge): Promise<Verdict> {
    const { bastion, display } = this.#options
    this.#pending = challenge
    if (this.#isGone || this.spent !== undefined) {
      this.onClosed()
      return { refused: TOO_MANY }
    }
    const own = display()
    if (challenge.link !== undefined) return await this.#wait(login, challenge)
    const given = await own.ask(challengeForm({ bastion, challenge }, own.size))
    if (given === 'cancelled') {
      this.onClosed()
      return 'left'
    }
    this.#pending = undefined
    const { answers } = given
    return await this.prove(login, { method: 'keyboard-interactive', challenge: challenge.id, answers })
  }

  /** Shows the link until the person has decided in a browser, or cancels here. */
  async #wait(login: string, challenge: Challenge): Promise<Verdict> {
    const { bastion, display, onWaiting } = this.#options
    onWaiting(WAIT_MS)
    const own = display()
    const cancelled = own.ask(challengeForm({ bastion, challenge }, own.size)).then((): Verdict => {
      this.#leave()
      return 'left'
    })
    const proof: Proof = { method: 'keyboard-interactive', challenge: challenge.id, answers: [] }
    const verdict = this.prove(login, proof).finally(() => {
      if (this.#pending === challenge) this.#pending = undefined
    })
    return await Promise.race([cancelled, verdict])
  }

  /** Cancels the challenge after the connection has closed. */
  onClosed(): void {
    this.#isGone = true
    this.#leave()
  }

  #leave(): void {
    const challenge = this.#pending
    this.#pending = undefined
    // Ignores errors: a broker that is gone has forgotten the challenge.
    if (challenge) this.#options.gate.leave({ identity: challenge.id }).catch(() => undefined)
  }
}
