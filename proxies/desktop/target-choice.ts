/**
 * Leads a signed-in user to the target of the session, over the bastion's own screens: the target that the
 * user has named, or one of a list, with a login there if it is required.
 */
import type {
  Gate,
  Identity,
  LogonQuestion,
  OpenRequest,
  TargetEntry,
  TargetsRequest,
} from '../../src/contract/gate.ts'
import { MAX_LOGON_REFUSALS } from '../session/limits.ts'
import { logonForm, logonOf } from './screens/form.ts'
import type { Screen, Size } from './screens/screen.ts'
import { TargetList } from './screens/targets.ts'
import { WaitingScreen } from './screens/waiting.ts'

/** The parts of a request to open a session that its user may choose. */
export type Choice = Pick<OpenRequest, 'target' | 'logon'>

/** `question`: another answer to it may succeed. */
export interface Refusal {
  message: string
  question?: LogonQuestion
}

/** A desktop of the bastion's own that shows its screens. */
export interface OwnDisplay {
  readonly size: Size
  /** `onOutcome` is called once, and never after another screen has replaced this one. */
  show<Outcome>(screen: Screen<Outcome>, onOutcome?: (outcome: Outcome) => void): void
  /** Like `show`, as a promise: it stays pending if another screen replaces this one. */
  ask<Outcome>(screen: Screen<Outcome>): Promise<Outcome>
}

export interface TargetChoiceOptions<Opened> {
  gate: Pick<Gate, 'targets'>
  identity: Identity
  protocol: TargetsRequest['protocol']
  /** The name that the bastion shows. */
  bastion: string
  /** Returns the desktop, made on first use. */
  display: () => OwnDisplay
  /**
   * Opens a session with its target, or returns the refusal. Never rejects. `signal` cancels, with its
   * reason.
   */
  open: (choice: Choice, signal: AbortSignal) => Promise<Opened | Refusal>
  /** Aborted when the connection has closed. */
  signal: AbortSignal
}

export class TargetChoice<Opened extends object> {
  readonly #options: TargetChoiceOptions<Opened>

  constructor(options: TargetChoiceOptions<Opened>) {
    this.#options = options
  }

  /** Shows the list of targets until one is open or the user leaves. `notice` is shown with the list. */
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

  /** Opens the session with its target, and asks for the login there as often as allowed. */
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
