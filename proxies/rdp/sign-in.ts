/**
 * Signs in a client that uses TLS without NLA: with the credentials of its Client Info, and if they do not
 * suffice, with a form and the gate's further questions. All decisions are the gate's.
 */
import type { AuthenticateRequest, Challenge, Gate, Identity, Source } from '../../src/contract/gate.ts'
import { challengeForm, signInForm, signInOf } from '../desktop/screens/form.ts'
import type { OwnDisplay } from '../desktop/target-choice.ts'
import { MAX_AUTH_TRIES } from '../session/limits.ts'
import type { RdpClient } from './front/client.ts'
import { loginOf } from './front/login.ts'

export interface RdpSignInOptions {
  gate: Pick<Gate, 'authenticate' | 'leave'>
  source: Source
  client: Pick<RdpClient, 'info' | 'takePassword'>
  /** The bastion's name on its screens. */
  bastion: string
  /** Returns the bastion's own desktop, created on first use. */
  display: () => OwnDisplay & { readonly keyboard: string }
}

/** `left`: the user cancelled. `refused`: no further attempt on this connection; a text for the user. */
export type SignInOutcome = { identity: Identity } | { refused: string } | 'left'

const REJECTED = 'wrong user name or password'
const TOO_MANY = 'too many failed attempts, try again with a new connection'

export class RdpSignIn {
  readonly #options: RdpSignInOptions
  #tries = 0
  /** The challenge that waits for the user's answer. */
  #pending: Challenge | undefined
  #isGone = false

  constructor(options: RdpSignInOptions) {
    this.#options = options
  }

  /** Rejects as the gate does. May stay pending after the connection has closed. */
  async run(): Promise<SignInOutcome> {
    const { client } = this.#options
    let login = loginOf(client.info)
    let password = client.takePassword()
    let flaw: string | undefined
    for (;;) {
      if (login === '' || password === '') {
        const answer = await this.#ask(login, flaw)
        if (answer === 'cancelled') return 'left'
        ;({ login, password } = answer)
        flaw = undefined
        continue
      }
      const verdict = await this.#judge(login, { method: 'password', password })
      if (typeof verdict !== 'string') return { identity: verdict }
      if (verdict === 'left') return 'left'
      if (MAX_AUTH_TRIES <= this.#tries) return { refused: TOO_MANY }
      password = ''
      flaw = verdict
    }
  }

  /** Cancels the challenge after the connection has closed. */
  onClosed(): void {
    this.#isGone = true
    const challenge = this.#pending
    this.#pending = undefined
    // Ignores errors: a broker that is gone has forgotten the challenge.
    if (challenge) this.#options.gate.leave({ identity: challenge.id }).catch(() => undefined)
  }

  async #ask(login: string, flaw: string | undefined) {
    const { bastion, display } = this.#options
    const own = display()
    const { keyboard } = own
    const form = signInForm({ bastion, login, keyboard, ...(flaw !== undefined && { flaw }) }, own.size)
    const answer = await own.ask(form)
    return answer === 'cancelled' ? answer : signInOf(answer.answers)
  }

  /** Returns the identity, or the text of the error. */
  async #judge(login: string, first: AuthenticateRequest['proof']): Promise<Identity | string> {
    const { gate, source } = this.#options
    for (let proof = first; ; ) {
      this.#tries++
      const answer = await gate.authenticate({ protocol: 'RDP', source, login, proof })
      this.#pending = undefined
      switch (answer.result) {
        case 'accepted':
          return answer.identity
        case 'malformed':
        case 'unavailable':
          return answer.message
        case 'challenge':
          this.#pending = answer.challenge
          break
        default:
          return REJECTED
      }
      if (this.#isGone || MAX_AUTH_TRIES <= this.#tries) {
        this.onClosed()
        return TOO_MANY
      }
      const answers = await this.#answers(answer.challenge)
      if (!answers) return 'left'
      proof = { method: 'keyboard-interactive', challenge: answer.challenge.id, answers }
    }
  }

  /** Returns undefined if the user cancels. */
  async #answers(challenge: Challenge): Promise<string[] | undefined> {
    const { bastion, display } = this.#options
    const own = display()
    const answer = await own.ask(challengeForm({ bastion, challenge }, own.size))
    if (answer !== 'cancelled') return answer.answers
    this.onClosed()
    return undefined
  }
}
