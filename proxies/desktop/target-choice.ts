/**
 * The way of somebody who has signed in to the target of their session, over the bastion's own screens: the one that
 * they have named, or one of a list, with the login there where it is asked for.
 */
import type {
  Gate,
  Identity,
  LogonQuestion,
  OpenRequest,
  TargetEntry,
  TargetsRequest,
} from '../../src/contract/gate.ts'
import { logonForm, logonOf } from './screens/form.ts'
import { MAX_LOGON_REFUSALS } from './screens/limits.ts'
import type { Screen, Size } from './screens/screen.ts'
import { TargetList } from './screens/targets.ts'
import { WaitingScreen } from './screens/waiting.ts'

/** What of a request to open a session its user may choose. */
export type Choice = Pick<OpenRequest, 'target' | 'logon'>

/** `question`: the user may try again with another answer to it. */
export interface Refusal {
  message: string
  question?: LogonQuestion
}

/** A desktop of the bastion's own that its screens are shown on. */
export interface OwnDisplay {
  readonly size: Size
  /** `onOutcome` is called once, and never after another screen has taken its place. */
  show<Outcome>(screen: Screen<Outcome>, onOutcome?: (outcome: Outcome) => void): void
  /** The same, as a promise: it stays open where another screen takes its place. */
  ask<Outcome>(screen: Screen<Outcome>): Promise<Outcome>
}

export interface TargetChoiceOptions<Opened> {
  gate: Pick<Gate, 'targets'>
  identity: Identity
  protocol: TargetsRequest['protocol']
  /** The name that the bastion shows itself by. */
  bastion: string
  /** The desktop, which is made where there is none yet. */
  display: () => OwnDisplay
  /** Opens a session with its target, or says why not. Never rejects. `signal`: nobody waits for it any more, and why. */
  open: (choice: Choice, signal: AbortSignal) => Promise<Opened | Refusal>
  /** The connection is gone. */
  signal: AbortSignal
}

export class TargetChoice<Opened extends object> {
  readonly #options: TargetChoiceOptions<Opened>

  constructor(options: TargetChoiceOptions<Opened>) {
    this.#options = options
  }

  /** The list of targets, until one of them is there, or the user leaves. `notice`: what is shown with it. */
  async fromList(notice?: string): Promise<Opened | 'left'> {
    const { gate, identity, protocol, bastion, signal } = this.#options
    const { user } = identity
    const display = this.#options.display()
    while (!signal.aborted) {
      const { targets, total } = await gate.targets({ identity: identity.token, protocol })
      const list = new TargetList(
        { bastion, user, targets, total, ...(notice !== undefined && { notice }) },
        display.size,
      )
      const outcome = await display.ask(list)
      if (outcome === 'left') return 'left'
      const opened = await this.#toChosen(display, outcome.choice)
      if (!isRefusal(opened)) return opened
      notice = opened.message
    }
    return 'left'
  }

  /** The session and its target, with the login there asked for as often as may be. */
  async reach(choice: Choice, signal: AbortSignal = this.#options.signal): Promise<Opened | Refusal> {
    const { identity, bastion, open } = this.#options
    const { user } = identity
    for (let refusals = 0; ; refusals++) {
      const opened = await open(choice, signal)
      if (!isRefusal(opened)) return opened
      const { question } = opened
      if (!question || refusals === MAX_LOGON_REFUSALS || signal.aborted) return opened
      const display = this.#options.display()
      const asked = choice.logon ? { ...question, flaw: opened.message } : question
      const answer = await display.ask(logonForm({ bastion, user, question: asked }, display.size))
      if (answer === 'cancelled') return { message: 'the login was cancelled' }
      choice = { ...choice, logon: logonOf(question, answer.answers) }
    }
  }

  async #toChosen(display: OwnDisplay, { target }: TargetEntry): Promise<Opened | Refusal> {
    const { identity, bastion } = this.#options
    const interrupt = new AbortController()
    const waiting = { bastion, user: identity.user, heading: 'Connecting', text: target }
    display.show(new WaitingScreen(waiting, display.size), () => interrupt.abort('interrupted'))
    return await this.reach({ target }, AbortSignal.any([interrupt.signal, this.#options.signal]))
  }
}

export function isRefusal<Opened extends object>(opened: Opened | Refusal): opened is Refusal {
  return 'message' in opened
}
