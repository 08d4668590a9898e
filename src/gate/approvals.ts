/**
 * Requests for approval: asked by the gate and the API, answered and ended here, each with its event before. What has
 * become of them reaches waiting clients by the log of changes, whichever process has written it.
 */
import type { Audit, EventCode } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import {
  type Approval,
  answered,
  answerTime,
  cancelled,
  expired,
  type GivenAnswer,
  isPending,
  KEEP_ENDED_MS,
  MAX_PENDING,
  MAX_PENDING_PER_USER,
  MAX_PER_HOUR,
  type Refusal,
} from '../model/approvals.ts'
import { parseCanonical } from '../model/login.ts'
import type { Id } from '../model/objects.ts'
import { newUlid } from '../store/ids.ts'
import type { Store } from '../store/store.ts'
import { Pace } from '../threads/pace.ts'
import type { Vault } from '../vault/vault.ts'
import { openScreen, sealScreen } from './approval-screens.ts'

/** The part of an approval that its requester says. */
export type Request = Pick<
  Approval,
  | 'kind'
  | 'userId'
  | 'userName'
  | 'authorizationId'
  | 'authorizationName'
  | 'target'
  | 'serviceId'
  | 'accountId'
  | 'login'
  | 'begin'
  | 'duration'
  | 'comment'
  | 'ticket'
  | 'quorum'
> &
  Partial<Pick<Approval, 'session' | 'detail' | 'connection' | 'apiKey'>> & {
    /** Text in view of a held command. It is stored sealed. */
    shown?: string
    /** Milliseconds for the answers, instead of the authorization's time. */
    answerMs?: number
  }

/** An actor, and where the actor comes from, as fields of events. */
export interface Actor {
  userId: Id
  name: string
  fields: EventFields
  /** Profile of the API key that is used. */
  keyProfile?: string
}

type Changed = Approval | Refusal | 'not_found'

const REFUSALS: Readonly<Record<Refusal | 'not_found', string>> = {
  not_pending: 'the request is answered or over already',
  own_request: 'nobody answers the own request',
  answered_already: 'this user has answered already',
  not_found: 'the right to answer is gone',
}

/** The audit log cannot be written, so nothing was done. */
export class UnauditedError extends Error {
  override readonly name = 'UnauditedError'
}

/** Read and ended together. */
const MAX_AT_ONCE = 100
const HOUR_MS = 3_600_000

export interface ApprovalsOptions {
  store: Pick<Store, 'approvals' | 'authorizations' | 'checkouts' | 'accounts' | 'users'>
  vault: Pick<Vault, 'seal' | 'open'>
  audit: Pick<Audit, 'record'>
  /** Milliseconds since the epoch. */
  now: () => number
}

export class Approvals {
  readonly #options: ApprovalsOptions
  readonly #turns = new Map<Id, Promise<unknown>>()
  #expiry: Promise<number> | undefined
  /** Requests of each user since `#hour`. */
  readonly #asked = new Map<Id, number>()
  #hour = 0
  /** Name of this process in requests of its clients. */
  readonly process = newUlid()

  constructor(options: ApprovalsOptions) {
    this.#options = options
  }

  /** Stores a request. Returns undefined if as many are pending as may be; `from`: the client, for the event. */
  async ask(request: Request, from: EventFields): Promise<Approval | undefined> {
    const { store, vault, now } = this.#options
    const { answerMs, begin, shown, ...asked } = request
    const authorization = await store.authorizations.find(request.authorizationId)
    const { approvalTimeout = 0, singleConnection = false } = authorization?.conditions ?? {}
    const created = now()
    if (!this.#mayAsk(request.userId, created)) return undefined
    if (await store.approvals.isFull(request.userId, LIMITS)) return undefined
    const id = newUlid()
    const times = { created, duration: request.duration, ...(begin !== undefined && { begin }) }
    const approval: Approval = {
      session: '',
      detail: '',
      connection: '',
      apiKey: '',
      ...asked,
      ...times,
      id,
      ...(shown !== undefined && { screen: sealScreen(vault, id, shown) }),
      state: 'pending',
      answerBy: answerMs === undefined ? answerTime(times, approvalTimeout) : created + answerMs,
      isSingle: singleConnection,
      uses: 0,
      answers: [],
    }
    const { holder: _own, ...fields } = fieldsOf(approval)
    await this.#record('approval.request', {
      ...fields,
      user: approval.userName,
      ...from,
      count: approval.quorum,
      duration: approval.duration,
      reason: approval.comment,
      ticket: approval.ticket,
    })
    const made = await store.approvals.create(approval, LIMITS)
    if (!made)
      await this.#record('approval.end', {
        ...fieldsOf(approval),
        result: 'failure',
        reason: 'too many wait',
      })
    return made
  }

  /** Returns the screen of a held command as long as the request waits, or the empty text. */
  screenOf(approval: Approval): string {
    return openScreen(this.#options.vault, approval)
  }

  /** Counts the request among those of the user in this hour. Returns false if there were too many. */
  #mayAsk(userId: Id, now: number): boolean {
    if (now < this.#hour || this.#hour + HOUR_MS <= now) {
      this.#hour = now
      this.#asked.clear()
    }
    const asked = this.#asked.get(userId) ?? 0
    if (asked >= MAX_PER_HOUR) return false
    this.#asked.set(userId, asked + 1)
    return true
  }

  /** Removes the requests that have been over for long. */
  async removeEnded(): Promise<void> {
    const { store, now } = this.#options
    const pace = new Pace()
    while ((await store.approvals.removeEnded(now() - KEEP_ENDED_MS, MAX_AT_ONCE)) === MAX_AT_ONCE)
      await pace.step()
  }

  /** Adds the answer of an approver. */
  answer(id: Id, actor: Actor, given: Omit<GivenAnswer, 'userId' | 'userName' | 'time'>): Promise<Changed> {
    const { store, now } = this.#options
    return this.#inTurn(id, async () => {
      const found = await store.approvals.find(id)
      if (!found) return 'not_found'
      const whole = { ...given, userId: actor.userId, userName: actor.name, time: now() }
      // Its own requester sees it; others that may not answer do not know it.
      if (found.userId === actor.userId) return 'own_request'
      if (!(await store.approvals.mayAnswer(found, actor.userId, whole.time, actor.keyProfile)))
        return 'not_found'
      const next = answered(found, whole)
      if (typeof next === 'string') return next
      const fields = {
        ...fieldsOf(found),
        user: actor.name,
        ...actor.fields,
        reason: given.comment,
        ...(found.ticket !== '' && { ticket: found.ticket }),
      }
      await this.#record('approval.answer', {
        ...fields,
        result: given.approved ? 'accepted' : 'rejected',
        duration: next.duration,
      })
      const changed = await store.approvals.answer(id, whole, actor.keyProfile)
      if (typeof changed === 'string')
        await this.#record('approval.answer', { ...fields, result: 'failure', reason: REFUSALS[changed] })
      return changed
    })
  }

  /** Cancels a pending request, or revokes an accepted one, which ends its sessions and checkouts. */
  async cancel(id: Id, by: { name: string; fields?: EventFields; comment: string }): Promise<Changed> {
    const { store, now } = this.#options
    const changed = await this.#inTurn(id, async () => {
      const found = await store.approvals.find(id)
      if (!found) return 'not_found'
      const end = { by: by.name, comment: by.comment, time: now() }
      const next = cancelled(found, end)
      if (typeof next === 'string') return next
      const result = found.state === 'accepted' ? 'revoked' : 'cancelled'
      const fields = { ...fieldsOf(found), user: by.name, ...by.fields }
      await this.#record('approval.end', { ...fields, result, reason: by.comment })
      return await store.approvals.cancel(id, end)
    })
    if (typeof changed !== 'string' && changed.uses > 0) await this.endRevokedCheckouts()
    return changed
  }

  /** Cancels a request of a client of this process that waits no longer. One by the API stays. */
  async cancelOwn(id: Id): Promise<void> {
    const { store, now } = this.#options
    const found = await store.approvals.find(id)
    if (found?.connection !== this.process || !isPending(found, now())) return
    await this.cancel(id, { name: found.userName, comment: 'cancelled by the requester' })
  }

  /** Expires all pending requests whose time has come; simultaneous calls share one run. Returns how many it ended. */
  expireOverdue(): Promise<number> {
    this.#expiry ??= this.#expireAll().finally(() => {
      this.#expiry = undefined
    })
    return this.#expiry
  }

  async #expireAll(): Promise<number> {
    const { store, now } = this.#options
    const pace = new Pace()
    for (let total = 0; ; ) {
      const some = await store.approvals.overdue(now(), MAX_AT_ONCE)
      let ended = 0
      for (const { id } of some) {
        await pace.step()
        if (typeof (await this.expire(id)) !== 'string') ended++
      }
      total += ended
      // The store may give back what it does not end.
      if (ended === 0 || some.length < MAX_AT_ONCE) return total
    }
  }

  /** Expires a pending request whose time has come. */
  expire(id: Id): Promise<Changed> {
    const { store, now } = this.#options
    return this.#inTurn(id, async () => {
      const found = await store.approvals.find(id)
      const next = found ? expired(found, now()) : 'not_found'
      if (!found || typeof next === 'string') return 'not_pending'
      await this.#record('approval.end', { ...fieldsOf(found), result: 'expired' })
      return await store.approvals.expire(id, now())
    })
  }

  /**
   * Cancels the requests of clients that waited at processes before this one; those that are overdue expire. Held
   * commands of sessions that run on elsewhere stay: their broker waits for the answers.
   */
  async cancelAbandoned(runsElsewhere: (session: Id) => boolean = () => false): Promise<void> {
    const { store } = this.#options
    for (let limit = MAX_AT_ONCE; ; ) {
      await this.expireOverdue()
      const some = await store.approvals.waitingAt(limit, this.process)
      const gone = some.filter(({ session }) => session === '' || !runsElsewhere(session))
      let ended = 0
      for (const { id, userName } of gone) {
        const by = { name: userName, comment: 'the connection that waited is gone' }
        if (typeof (await this.cancel(id, by)) !== 'string') ended++
      }
      if (some.length < limit || (ended === 0 && gone.length > 0)) return
      limit = MAX_AT_ONCE + some.length - gone.length
    }
  }

  /** Takes the checkouts back whose approval was revoked. */
  async endRevokedCheckouts(): Promise<void> {
    const { store, now } = this.#options
    for (const checkout of await store.checkouts.revoked(now(), MAX_AT_ONCE)) {
      const approval = await store.approvals.find(checkout.approval ?? '')
      const by = approval?.ended?.by ?? ''
      const comment = approval?.ended?.comment ?? ''
      const reason = `the approval was revoked${comment === '' ? '' : `: ${comment}`}`
      const [placed] = await store.accounts.meant({ account: checkout.accountId }, 1)
      const holder = await store.users.find(checkout.userId)
      await this.#record('checkout.forced', {
        ...(by !== '' && { user: by }),
        account: placed?.account.accountName ?? checkout.accountId,
        ...(placed && { domain: placed.domain.domainName }),
        ...(placed?.device && { device: placed.device.deviceName }),
        object: checkout.id,
        holder: holder?.userName ?? checkout.userId,
        reason,
      })
      await store.checkouts
        .end(checkout.id, now(), { by: by === '' ? 'approval' : by, comment: reason })
        // Another process was faster.
        .catch((error: unknown) => {
          if (!(error instanceof Error && error.name === 'MissingReferenceError')) throw error
        })
    }
  }

  /** Returns lines for a waiting user: the approvers asked, how many have to agree, and until when. */
  async linesOf(approval: Approval): Promise<string[]> {
    const groups = await this.#options.store.approvals.approversOf(approval.authorizationId)
    const { quorum, target, answerBy, id } = approval
    const agree = quorum === 1 ? 'one of them has' : `${quorum} of them have`
    return [
      `${target} needs an approval.`,
      `Asked: ${groups.length === 0 ? 'nobody is left to ask' : groups.join(', ')}; ${agree} to agree.`,
      `Until ${new Date(answerBy).toISOString()} (request ${id}).`,
    ]
  }

  async #record(code: EventCode, fields: EventFields): Promise<void> {
    try {
      await this.#options.audit.record(code, fields as never)
    } catch (error) {
      throw new UnauditedError(`the event ${code} cannot be written`, { cause: error })
    }
  }

  /** Does changes of one approval one after the other, so that an event is about a change that happens. */
  async #inTurn<T>(id: Id, change: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(id) ?? Promise.resolve()
    const done = before.then(change, change)
    this.#turns.set(id, done)
    try {
      return await done
    } finally {
      if (this.#turns.get(id) === done) this.#turns.delete(id)
    }
  }
}

const LIMITS = { ofUser: MAX_PENDING_PER_USER, all: MAX_PENDING }

/** Returns the fields that each event about an approval has. */
export function fieldsOf(approval: Approval): EventFields {
  const { id, kind, userName, authorizationName, session } = approval
  return {
    ...(session !== '' && { session }),
    ...placeOf(approval),
    authorization: authorizationName,
    object_type: kind,
    object: id,
    holder: userName,
  }
}

function placeOf({ kind, target }: Approval): EventFields {
  if (kind === 'checkout') {
    const [account = '', domain = '', device = ''] = target.split('@')
    return { account, domain, ...(device !== '' && { device }) }
  }
  const parsed = parseCanonical(target)
  return parsed ? Object.fromEntries(Object.entries(parsed).filter(([, name]) => name !== '')) : {}
}

/** Returns the state of a waiting request as a line for its user. */
export function stateText(approval: Approval, now: number): string {
  const { state, answers, quorum, ended } = approval
  const said = ended && ended.comment !== '' ? `: ${ended.comment}` : ''
  const by = ended && ended.by !== '' ? ` by ${ended.by}` : ''
  switch (state) {
    case 'accepted': {
      const last = answers.at(-1)
      const comment = last && last.comment !== '' ? `: ${last.comment}` : ''
      return `accepted by ${answers.map(({ userName }) => userName).join(', ')}${comment}`
    }
    case 'rejected':
    case 'cancelled':
      return `${state}${by}${said}`
    case 'expired':
      return 'nobody has answered in time'
    case 'pending':
      return isPending(approval, now)
        ? `${answers.length} of ${quorum} have agreed`
        : 'nobody has answered in time'
  }
}
