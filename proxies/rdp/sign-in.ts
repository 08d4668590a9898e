/**
 * Signs in a client that uses TLS without NLA: with the credentials of its Client Info, and if they do not
 * suffice, with a form and the gate's further questions. All decisions are the gate's.
 */
import { Rounds, type RoundsOptions, type Verdict } from '../desktop/rounds.ts'
import { signInForm, signInOf } from '../desktop/screens/form.ts'
import type { OwnDisplay } from '../desktop/target-choice.ts'
import type { RdpClient } from './front/client.ts'
import { loginOf } from './front/login.ts'

export interface RdpSignInOptions extends Omit<RoundsOptions, 'protocol' | 'display'> {
  client: Pick<RdpClient, 'info' | 'takePassword'>
  /** Returns the bastion's own desktop, created on first use. */
  display: () => OwnDisplay & { readonly keyboard: string }
}

const REJECTED = 'wrong user name or password'

export class RdpSignIn {
  readonly #options: RdpSignInOptions
  readonly #rounds: Rounds

  constructor(options: RdpSignInOptions) {
    this.#options = options
    this.#rounds = new Rounds({ ...options, protocol: 'RDP' }, REJECTED)
  }

  /**
   * Returns a refusal when no further attempt is allowed on this connection. Rejects as the gate does. May
   * stay pending after the connection has closed.
   */
  async run(): Promise<Verdict> {
    const { client } = this.#options
    let login = loginOf(client.info)
    let password = client.takePassword()
    let flaw: string | undefined
    for (;;) {
      // Whatever password the client has: there is none for such a name.
      const begun = login === '' ? undefined : await this.#rounds.begin(login)
      if (begun === 'left' || (begun && 'identity' in begun)) return begun
      if (begun) return { refused: begun.refused }
      if (login === '' || password === '') {
        const answer = await this.#ask(login, flaw)
        if (answer === 'cancelled') return 'left'
        ;({ login, password } = answer)
        flaw = undefined
        continue
      }
      const verdict = await this.#rounds.prove(login, { method: 'password', password })
      if (verdict === 'left' || 'identity' in verdict) return verdict
      const { spent } = this.#rounds
      if (spent !== undefined) return { refused: spent }
      password = ''
      flaw = verdict.refused
    }
  }

  /** Cancels the challenge after the connection has closed. */
  onClosed(): void {
    this.#rounds.onClosed()
  }

  async #ask(login: string, flaw: string | undefined) {
    const { bastion, display } = this.#options
    const own = display()
    const { keyboard } = own
    const form = signInForm({ bastion, login, keyboard, ...(flaw !== undefined && { flaw }) }, own.size)
    const answer = await own.ask(form)
    return answer === 'cancelled' ? answer : signInOf(answer.answers)
  }
}
