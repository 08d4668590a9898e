/**
 * What a user owes before a session: a reason, if the authorization asks for one, and the approval of others. Decides
 * before anything of the session exists.
 */
import { canonicalName, type Target } from '../access/targets.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { OpenAnswer, OpenRequest, Reason, ReasonQuestion } from '../contract/gate.ts'
import { apiKeyOf } from '../identity/basis.ts'
import {
  type Approval,
  endOf,
  isPending,
  isUsable,
  reasonFlaw,
  STANDARD_DURATION,
  type Wanted,
} from '../model/approvals.ts'
import type { Id, User } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import { type Approvals, stateText } from './approvals.ts'
import { Denial } from './denial.ts'
import type { SessionApproval } from './running.ts'
import type { SignedIn } from './signed-in.ts'
import type { Waits } from './waits.ts'

/** The grounds of a session, beside its rights. */
export interface Clearance {
  reason?: Reason
  /** An accepted approval, counted as used. */
  approval?: Approval
}

export interface ClearanceOptions {
  store: Pick<Store, 'approvals'>
  approvals: Approvals
  waits: Waits
  /** Whether this is the token of a sign-in: the client may leave while its request is stored. */
  isSignedIn: (token: string) => boolean
  /** Milliseconds since the epoch. */
  now: () => number
}

const NOTHING: { comment: Wanted; ticket: Wanted } = { comment: 'none', ticket: 'none' }

/** Returns the approval as a running session keeps it. */
export function approvalOf({ id, authorizationId, begin, duration }: Approval): SessionApproval {
  return { id, authorizationId, end: endOf({ duration, ...(begin !== undefined && { begin }) }) ?? 0 }
}

/** Names the object of a session's approval. */
export function objectOf({ serviceId, accountId, accountLogin }: Target) {
  return { serviceId, accountId: accountId ?? '', login: accountId === undefined ? accountLogin : '' }
}

export class ClearanceDesk {
  readonly #options: ClearanceOptions

  constructor(options: ClearanceOptions) {
    this.#options = options
  }

  /** Returns the user's approvals that open this target now, the newest first. */
  async usable(userId: Id, target: Target): Promise<Approval[]> {
    const { store, now } = this.#options
    const accepted = await store.approvals.ofUser(
      { userId, kind: 'session', ...objectOf(target) },
      'accepted',
    )
    // One for a single connection that a client waits for is that client's.
    return accepted.filter((one) => isUsable(one, now()) && !(one.isSingle && one.connection !== ''))
  }

  /**
   * Returns the question of a reason without which no session opens there, unless the user has asked for an approval
   * beforehand.
   */
  async questionAhead(userId: Id, target: Target): Promise<ReasonQuestion | undefined> {
    const { wanted, quorum } = target
    if (wanted?.comment !== 'mandatory' && wanted?.ticket !== 'mandatory') return undefined
    if (quorum !== undefined) {
      if ((await this.usable(userId, target)).length > 0) return undefined
      if (await this.#made(userId, target)) return undefined
    }
    return { target: canonicalName(target), ...wanted }
  }

  /** Returns the user's pending request by the API, if its own window includes this moment. */
  async #made(userId: Id, target: Target): Promise<Approval | undefined> {
    const { store, now } = this.#options
    const whose = { userId, kind: 'session' as const, ...objectOf(target) }
    const pending = await store.approvals.ofUser(whose, 'pending')
    return pending.find((one) => one.connection === '' && isPending(one, now()) && (one.begin ?? 0) <= now())
  }

  /**
   * Returns the user's reason, or the answer that asks for it, for a target that needs no approval.
   */
  reasonFor(target: Target, request: OpenRequest): Clearance | OpenAnswer {
    if (!target.wanted) return {}
    return this.#reason(target, request, false)
  }

  /** Asks for an approval, or returns the question of the reason first. @throws Denial */
  async ask(
    person: User,
    signedIn: SignedIn,
    target: Target,
    request: OpenRequest,
    from: EventFields,
  ): Promise<OpenAnswer> {
    const { approvals } = this.#options
    const whose = { userId: person.id, kind: 'session' as const, ...objectOf(target) }
    const made = await this.#made(person.id, target)
    if (made) return await this.#wait(made, request.identity)
    const given = this.#reason(target, request, true)
    if ('result' in given) return given
    const { comment = '', ticket = '', duration } = given.reason ?? {}
    const apiKey = apiKeyOf(signedIn.basis)
    const asked = await approvals.ask(
      {
        ...whose,
        userName: person.userName,
        authorizationId: target.authorizationIds[0] ?? '',
        authorizationName: target.authorizationNames[0] ?? '',
        target: canonicalName(target),
        duration: duration === undefined ? STANDARD_DURATION : duration * 1000,
        comment,
        ticket,
        quorum: target.quorum ?? 1,
        connection: approvals.process,
        ...(apiKey !== undefined && { apiKey }),
      },
      from,
    )
    if (!asked) throw new Denial('too many requests for approval wait: try again later')
    return await this.#wait(asked, request.identity)
  }

  /** Returns the approval that the client waited for, or the answer that there is none. @throws Denial */
  async waitedFor(
    id: Id,
    person: User,
    target: Target,
    request: OpenRequest,
  ): Promise<Approval | OpenAnswer> {
    const { store, now } = this.#options
    const found = await store.approvals.find(id)
    const { serviceId, accountId, login } = objectOf(target)
    const isIts =
      found?.userId === person.id &&
      found.kind === 'session' &&
      found.serviceId === serviceId &&
      found.accountId === accountId &&
      found.login === login
    if (!isIts) throw new Denial('there is no such approval of yours for this target')
    if (isPending(found, now())) return await this.#wait(found, request.identity)
    if (isUsable(found, now())) return found
    const over = found.state === 'accepted' ? 'its time is over, or it was used' : stateText(found, now())
    throw new Denial(`the session was not approved: ${over}`)
  }

  /** Counts the session that is about to be opened. @throws Denial if another was faster, or it was revoked */
  async use({ id }: Approval): Promise<Approval> {
    const { store, now } = this.#options
    const used = await store.approvals.use(id, now())
    if (typeof used === 'string') throw new Denial('the approval cannot be used any more: ask again')
    return used
  }

  async release({ id }: Approval): Promise<void> {
    await this.#options.store.approvals.release(id)
  }

  async #wait(approval: Approval, identity: string): Promise<OpenAnswer> {
    const { approvals, waits, isSignedIn } = this.#options
    waits.add(approval, identity)
    if (!isSignedIn(identity)) {
      for (const id of waits.remove(identity, approval.id)) await approvals.cancelOwn(id)
      throw new Denial('the client has left')
    }
    const lines = await approvals.linesOf(approval)
    const { id, target, answerBy } = approval
    return { result: 'approval_pending', wait: { approval: id, target, lines, expires: answerBy } }
  }

  #reason(
    target: Target,
    { reason }: OpenRequest,
    asksDuration: boolean,
  ): Clearance | (OpenAnswer & { result: 'reason_needed' }) {
    const wanted = target.wanted ?? NOTHING
    const isWanted = wanted.comment !== 'none' || wanted.ticket !== 'none'
    if (!reason && !isWanted) return {}
    const flaw = reason && reasonFlaw(reason, wanted)
    if (reason && flaw === undefined) return { reason }
    return {
      result: 'reason_needed',
      question: {
        target: canonicalName(target),
        ...wanted,
        ...(asksDuration && { asksDuration }),
        ...(flaw !== undefined && { flaw }),
      },
    }
  }
}
