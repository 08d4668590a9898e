/**
 * Held command lines: each is a request for approval of its own kind, answered like the others. One that its user
 * gives up, that has no answer in time, or whose session ends, is denied.
 */
import { canonicalName } from '../access/targets.ts'
import type { AskCommandAnswer, AskCommandRequest, GateNotice } from '../contract/gate.ts'
import type { Approval } from '../model/approvals.ts'
import { NO_CONDITIONS } from '../model/conditions.ts'
import type { Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import { type Approvals, stateText } from './approvals.ts'
import { objectOf } from './clearance.ts'
import { type RunningSession, sessionFields } from './running.ts'
import type { Touched } from './touched.ts'

/** Questions of one session that are open at a time: it has no more channels. */
const MAX_OPEN = 32
/** Characters of the line, the rule and the screen that approvers see. */
const MAX_LINE = 4_096
const MAX_SCREEN = 16_384
/** Milliseconds after the time for the answer, so that the store finds it expired. */
const LATE_MS = 20
const UNREAD = '(not read: it is not shown on the screen)'

interface Ask {
  session: Id
  ask: number
  /** Absent while it is being stored. */
  approval?: Id
  answer: (answer: AskCommandAnswer) => void
  timer: NodeJS.Timeout | undefined
}

/** The authorization whose approvers are asked. */
interface Asked {
  id: Id
  name: string
  /** For the user. */
  who: string
  quorum: number
}

export interface AsksOptions {
  store: Pick<Store, 'approvals' | 'authorizations' | 'access'>
  approvals: Pick<Approvals, 'ask' | 'cancelOwn' | 'expire' | 'process'>
  notify: (notice: GateNotice) => void
  /** Milliseconds since the epoch. */
  now: () => number
}

const refused = (message: string): AskCommandAnswer => ({ result: 'refused', message })

export class Asks {
  readonly #options: AsksOptions
  readonly #bySession = new Map<Id, Set<Ask>>()
  readonly #byApproval = new Map<Id, Ask>()

  constructor(options: AsksOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#byApproval.size
  }

  /** Resolves with the approvers' answer. */
  async ask(session: RunningSession, request: AskCommandRequest): Promise<AskCommandAnswer> {
    if (session.stopped !== undefined) return refused(session.stopped)
    if (session.holds?.size) return refused('input is suspended')
    const open = this.#bySession.get(session.id) ?? new Set()
    if (open.size >= MAX_OPEN) return refused('too many commands wait for an answer')
    this.#bySession.set(session.id, open)
    return await new Promise<AskCommandAnswer>((resolve) => {
      const one: Ask = { session: session.id, ask: request.ask, answer: resolve, timer: undefined }
      open.add(one)
      this.#request(session, request, one).catch(() =>
        this.#close(one, refused('no approver can be asked now')),
      )
    })
  }

  /** The user gives up a question. */
  async giveUp(session: Id, ask: number): Promise<void> {
    for (const one of this.#bySession.get(session) ?? []) {
      if (one.ask === ask) await this.#cancel(one, 'the user gave up')
    }
  }

  /** Denies the open questions of a session that has ended, or whose input is suspended. */
  onClosed(session: Id, reason: string): void {
    for (const one of [...(this.#bySession.get(session) ?? [])])
      void this.#cancel(one, reason).catch(() => undefined)
  }

  /** Answers the questions whose approvals were touched. */
  async review(touched: Touched): Promise<void> {
    if (this.#byApproval.size === 0) return
    const ids = touched.approvalsAmong(this.#byApproval)
    if (ids.length === 0) return
    for (const approval of await this.#options.store.approvals.some(ids)) this.#changed(approval)
  }

  async #request(session: RunningSession, request: AskCommandRequest, one: Ask): Promise<void> {
    const { store, approvals, notify } = this.#options
    const { target } = session
    const asked = await this.#authorization(session)
    const line = request.line === '' ? UNREAD : request.line.slice(0, MAX_LINE)
    const screen = request.screen.join('\n').slice(-MAX_SCREEN)
    const shown = `rule: ${request.rule.slice(0, MAX_LINE)}${screen === '' ? '' : `\n\n${screen}`}`
    const approval = await approvals.ask(
      {
        kind: 'command',
        ...objectOf(target),
        userId: session.userId,
        userName: session.user,
        authorizationId: asked.id,
        authorizationName: asked.name,
        target: canonicalName(target),
        duration: session.askMs,
        answerMs: session.askMs,
        comment: line.slice(0, 1_000).replaceAll(/\p{C}/gu, ' '),
        ticket: session.reason?.ticket ?? '',
        quorum: asked.quorum,
        session: session.id,
        detail: line,
        shown,
        connection: approvals.process,
      },
      sessionFields(session),
    )
    if (!approval) {
      this.#close(one, refused('too many requests wait for an answer'))
      return
    }
    one.approval = approval.id
    this.#byApproval.set(approval.id, one)
    if (!this.#isOpen(one)) {
      // It was given up meanwhile.
      this.#byApproval.delete(approval.id)
      await approvals.cancelOwn(approval.id)
      return
    }
    const { id } = approval
    one.timer = setTimeout(() => void this.#expire(one, id), session.askMs + LATE_MS)
    const seconds = Math.round(session.askMs / 1000)
    const agree = asked.quorum === 1 ? '' : ` (${asked.quorum} have to agree)`
    const text = `this command waits for an approval by ${asked.who}${agree}, for ${seconds} s (request ${approval.id}): Ctrl-C gives up`
    notify({ type: 'tell', session: session.id, text })
    // An answer may have come before this process knew the question.
    const now = await store.approvals.find(approval.id)
    if (now) this.#changed(now)
  }

  /** Returns the authorization whose approvers are asked: the first that has some, or else the first. */
  async #authorization(session: RunningSession): Promise<Asked> {
    const { authorizationIds, authorizationNames } = session.target
    for (const [index, id] of authorizationIds.entries()) {
      const groups = await this.#options.store.approvals.approversOf(id)
      if (groups.length === 0) continue
      const quorum = await this.#quorum(session, id)
      return { id, name: authorizationNames[index] ?? '', who: groups.join(', '), quorum }
    }
    return {
      id: authorizationIds[0] ?? '',
      name: authorizationNames[0] ?? '',
      who: 'those who may end this session',
      quorum: 1,
    }
  }

  /** Returns how many have to agree: outside of the timeframes as many as open a session then. */
  async #quorum({ userId, target }: RunningSession, authorization: Id): Promise<number> {
    const { store, now } = this.#options
    const conditions = (await store.authorizations.find(authorization))?.conditions ?? NO_CONDITIONS
    const rows = await store.access.sessionTargets(userId, now(), { device: target.deviceName })
    const isWithin = rows.some(({ authorizationId }) => authorizationId === authorization)
    const { activeQuorum, inactiveQuorum } = conditions
    // In overtime no quorum for the outside may be set.
    return (!isWithin && inactiveQuorum) || activeQuorum || 1
  }

  #changed(approval: Approval): void {
    const one = this.#byApproval.get(approval.id)
    if (!one || approval.state === 'pending') return
    const message = stateText(approval, this.#options.now())
    this.#close(one, { result: approval.state === 'accepted' ? 'accepted' : 'refused', message })
  }

  /** Ends a question whose time has come, and its request: nothing stays that could be answered. */
  async #expire(one: Ask, id: Id): Promise<void> {
    const { store, approvals } = this.#options
    try {
      await approvals.expire(id)
      const found = await store.approvals.find(id)
      // An answer came at the last moment.
      if (found && found.state !== 'expired') this.#changed(found)
      // The clock was set back.
      if (this.#isOpen(one)) await approvals.cancelOwn(id)
    } catch {
      // The event cannot be written: the request expires with the others, and counts for nothing.
    } finally {
      this.#close(one, refused('nobody has answered in time'))
    }
  }

  async #cancel(one: Ask, reason: string): Promise<void> {
    const { approval } = one
    this.#close(one, refused(reason))
    if (approval !== undefined) await this.#options.approvals.cancelOwn(approval)
  }

  #isOpen(one: Ask): boolean {
    return this.#bySession.get(one.session)?.has(one) ?? false
  }

  #close(one: Ask, answer: AskCommandAnswer): void {
    clearTimeout(one.timer)
    if (one.approval !== undefined) this.#byApproval.delete(one.approval)
    const open = this.#bySession.get(one.session)
    open?.delete(one)
    if (open?.size === 0) this.#bySession.delete(one.session)
    one.answer(answer)
  }
}
