/**
 * Leads a signed-in user to the target of the session, over the bastion's own screens: the target that the
 * user has named, or one of a list, with a login there if it is required.
 */
import type {
  ApprovalWait,
  Challenge,
  Gate,
  Identity,
  Reason,
  ReasonQuestion,
  TargetEntry,
  TargetsRequest,
} from '../../src/contract/gate.ts'
import type { ApprovalWaits } from '../session/approval-waits.ts'
import { MAX_LOGON_REFUSALS } from '../session/limits.ts'
import type { Choice, Refusal } from '../session/refusal.ts'
import { flawOfField, noticeLines, type ReasonField, reasonFields, reasonOf } from '../wording/reason.ts'
import { ApprovalScreen, reasonForm, reasonTexts } from './screens/approval.ts'
import { challengeForm, logonForm, logonOf } from './screens/form.ts'
import type { Screen, Size } from './screens/screen.ts'
import { TargetList } from './screens/targets.ts'
import { WaitingScreen } from './screens/waiting.ts'

export type { Choice, Refusal } from '../session/refusal.ts'

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
  /** The clients that wait for an approval. */
  approvals: Pick<ApprovalWaits, 'end'>
  /** Called when the connection may stay that many milliseconds longer without input. 0: as usual. */
  onPatience: (milliseconds: number) => void
  /** Aborted when the connection has closed. */
  signal: AbortSignal
}

export class TargetChoice<Opened extends object> {
  readonly #options: TargetChoiceOptions<Opened>
  #onTargets: ((text: string) => void) | undefined

  constructor(options: TargetChoiceOptions<Opened>) {
    this.#options = options
  }

  /** Shows the list of targets until one is open or the user leaves. `notice` is shown with the list. */
  async fromList(notice?: string): Promise<Opened | 'left'> {
    const { gate, identity, protocol, bastion, signal } = this.#options
    const { user } = identity
    const display = this.#options.display()
    while (!signal.aborted) {
      const changed = new Promise<{ changed: string }>((resolve) => {
        this.#onTargets = (changed) => resolve({ changed })
      })
      const { targets, total } = await gate.targets({ identity: identity.token, protocol })
      const list = new TargetList(
        { bastion, user, targets, total, ...(notice !== undefined && { notice }) },
        display.size,
      )
      const outcome = await Promise.race([display.ask(list), changed])
      this.#onTargets = undefined
      if (outcome === 'left') return 'left'
      if ('changed' in outcome) {
        notice = outcome.changed
        continue
      }
      const opened = await this.#toChosen(outcome.choice)
      if (!isRefusal(opened)) return opened
      notice = opened.message
    }
    return 'left'
  }

  /** Shows the list anew, with this notice, if it is shown. */
  refresh(text: string): void {
    this.#onTargets?.(text)
  }

  /** Opens the session with its target, once all that the gate asks for is there. */
  async reach(choice: Choice, signal: AbortSignal = this.#options.signal): Promise<Opened | Refusal> {
    const { open } = this.#options
    const interrupt = new AbortController()
    const either = AbortSignal.any([signal, interrupt.signal])
    for (let refusals = 0; ; ) {
      const opened = await open(choice, either)
      if (!isRefusal(opened) || either.aborted) return opened
      const { factor, question, reason, wait } = opened
      if (wait) {
        const { state, text } = await this.#approved(wait, either)
        if (state !== 'accepted') return { message: noticeLines(text).join('\n') }
        this.#connecting(wait.target, interrupt)
        choice = { ...choice, approval: wait.approval }
        continue
      }
      if (factor) {
        const answered = await this.#factor(factor, opened.message)
        if (!answered) return { message: 'the second factor was cancelled' }
        choice = { ...choice, ...answered }
        continue
      }
      if ((!question && !reason) || refusals++ === MAX_LOGON_REFUSALS) return opened
      const given = reason
        ? await this.#reason(reason, choice.reason)
        : await this.#logon({ ...opened, question: question! }, choice)
      if (!given) return { message: `the ${reason ? 'reason' : 'login'} was cancelled` }
      choice = { ...choice, ...given }
    }
  }

  /** Asks for a round of the second factor. Returns undefined if the user cancels. */
  async #factor(challenge: Challenge, why: string): Promise<Pick<Choice, 'factor'> | undefined> {
    const { bastion, display } = this.#options
    const own = display()
    const title = challenge.title === '' ? why : challenge.title
    const answer = await own.ask(challengeForm({ bastion, challenge: { ...challenge, title } }, own.size))
    return answer === 'cancelled'
      ? undefined
      : { factor: { challenge: challenge.id, answers: answer.answers } }
  }

  /** Asks for the login at the target. Returns undefined if the user cancels. */
  async #logon(
    { question, message }: Required<Pick<Refusal, 'question' | 'message'>>,
    { logon }: Choice,
  ): Promise<Pick<Choice, 'logon'> | undefined> {
    const { identity, bastion, display } = this.#options
    const own = display()
    const asked = logon ? { ...question, flaw: message } : question
    const answer = await own.ask(logonForm({ bastion, user: identity.user, question: asked }, own.size))
    return answer === 'cancelled' ? undefined : { logon: logonOf(question, answer.answers) }
  }

  /** Asks for the reason of the session until it is complete. `before`: the answer that the gate refused. */
  async #reason(
    question: ReasonQuestion,
    before: Reason | undefined,
  ): Promise<Pick<Choice, 'reason'> | undefined> {
    const { identity, bastion, display } = this.#options
    const own = display()
    let texts: Partial<Record<ReasonField, string>> = before
      ? { comment: before.comment, ticket: before.ticket }
      : {}
    for (let flaw = question.flaw; ; ) {
      const why = flaw === undefined ? {} : { flaw }
      const form = reasonForm({ bastion, user: identity.user, question, texts, ...why }, own.size)
      const answer = await own.ask(form)
      if (answer === 'cancelled') return undefined
      texts = reasonTexts(question, answer.answers)
      flaw = reasonFields(question)
        .map(({ field }) => flawOfField(question, field, texts[field] ?? ''))
        .find((one) => one !== undefined)
      if (flaw === undefined) return { reason: reasonOf(texts) }
    }
  }

  /** Shows who is asked, and each answer, until the approval has ended. */
  async #approved(wait: ApprovalWait, signal: AbortSignal) {
    const { identity, bastion, approvals, onPatience, display } = this.#options
    const { user, token } = identity
    const own = display()
    const given = new AbortController()
    const show = (news?: string) => {
      const of = { bastion, user, target: wait.target, lines: wait.lines }
      const told = news === undefined ? {} : { news: noticeLines(news).join('\n') }
      own.show(new ApprovalScreen({ ...of, ...told }, own.size), () => given.abort())
    }
    show()
    onPatience(wait.expires - Date.now())
    const either = AbortSignal.any([given.signal, signal])
    const end = await approvals.end({ identity: token, wait, onNews: show, signal: either })
    onPatience(0)
    return end
  }

  #connecting(target: string, interrupt: AbortController): void {
    const { identity, bastion, display } = this.#options
    const own = display()
    const waiting = { bastion, user: identity.user, heading: 'Connecting', text: target }
    own.show(new WaitingScreen(waiting, own.size), () => interrupt.abort('interrupted'))
  }

  async #toChosen({ target }: TargetEntry): Promise<Opened | Refusal> {
    const interrupt = new AbortController()
    this.#connecting(target, interrupt)
    return await this.reach({ target }, AbortSignal.any([interrupt.signal, this.#options.signal]))
  }
}

export function isRefusal<Opened extends object>(opened: Opened | Refusal): opened is Refusal {
  return 'message' in opened
}
