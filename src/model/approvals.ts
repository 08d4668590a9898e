/**
 * Approvals: a request of a user, the answers of approvers, and what follows from them. Pure; times in milliseconds
 * since the epoch.
 */
import type { Id } from './objects.ts'

export const APPROVAL_STATES = ['pending', 'accepted', 'rejected', 'cancelled', 'expired'] as const
export type ApprovalState = (typeof APPROVAL_STATES)[number]
/** `command`: a held line of a running session. */
export const APPROVAL_KINDS = ['session', 'checkout', 'command'] as const
export type ApprovalKind = (typeof APPROVAL_KINDS)[number]

const SECOND = 1000
const DAY = 86_400 * SECOND
/** Bounds of what may be asked for. */
export const MIN_DURATION = SECOND
export const MAX_DURATION = 7 * DAY
export const STANDARD_DURATION = 3_600 * SECOND
export const MAX_AHEAD = 90 * DAY
/** Seconds that an authorization may give for an answer. */
export const MAX_APPROVAL_TIMEOUT = MAX_DURATION / SECOND
export const MAX_QUORUM = 100
export const MAX_APPROVER_GROUPS = 100
/** Pending requests of one user, and of all. */
export const MAX_PENDING_PER_USER = 20
export const MAX_PENDING = 10_000
/** Requests that one user may make within an hour. */
export const MAX_PER_HOUR = 200
/** Milliseconds for which ended requests are kept. Their events stay in the audit log. */
export const KEEP_ENDED_MS = 400 * DAY
/** Characters of a comment, which may have several lines, and of a ticket, which has one. */
export const MAX_COMMENT = 1_000
export const MAX_COMMENT_LINES = 20
export const MAX_TICKET_TEXT = 100

/** The object that an approval is about, by what its name may not change. Empty if it does not apply. */
export interface ApprovalObject {
  serviceId: string
  accountId: string
  /** The login at a target without a stored account. */
  login: string
}

export interface Answer {
  userId: Id
  userName: string
  approved: boolean
  comment: string
  time: number
  apiKey: string
}

export interface Approval extends ApprovalObject {
  id: Id
  kind: ApprovalKind
  state: ApprovalState
  userId: Id
  userName: string
  authorizationId: Id
  authorizationName: string
  /** As people read it. */
  target: string
  /** Session and line of a held command; empty otherwise. */
  session: string
  detail: string
  /** Sealed screen of a held command. The store forgets it when the request is answered or ends. */
  screen?: Uint8Array
  created: number
  /** Undefined until it is accepted, if it was asked for at once. */
  begin?: number
  duration: number
  /** When the answers have to be there. */
  answerBy: number
  comment: string
  ticket: string
  quorum: number
  /** Opens one session, or one checkout, only. */
  isSingle: boolean
  /** Number of sessions and checkouts that it has opened. */
  uses: number
  /** The process whose client waits; empty for a request by the API. */
  connection: string
  apiKey: string
  answers: Answer[]
  /** Set when it was rejected, cancelled or revoked, or has expired. */
  ended?: { time: number; by: string; comment: string }
}

export type Refusal =
  /** It was answered, cancelled, or has expired. */
  | 'not_pending'
  /** The requester's own. */
  | 'own_request'
  | 'answered_already'

/** An answer of an approver, with a shorter duration (milliseconds) if it is to be shortened. */
export type GivenAnswer = Answer & { duration?: number }

/** Returns the end of the accepted time, or undefined before it is known. */
export function endOf({ begin, duration }: Pick<Approval, 'begin' | 'duration'>): number | undefined {
  return begin === undefined ? undefined : begin + duration
}

/** Whether it waits for answers at `now`. */
export function isPending({ state, answerBy }: Approval, now: number): boolean {
  return state === 'pending' && now < answerBy
}

/** Whether a session or checkout may be opened by it at `now`. */
export function isUsable(approval: Approval, now: number): boolean {
  return holds(approval, now) && !(approval.isSingle && approval.uses > 0)
}

/** Whether what was opened by it may go on at `now`. */
export function holds(approval: Approval, now: number): boolean {
  const { state, begin, duration } = approval
  return state === 'accepted' && begin !== undefined && begin <= now && now < begin + duration
}

/** Returns the approval after the answer, or why it cannot be given. One rejection rejects. */
export function answered(approval: Approval, given: GivenAnswer): Approval | Refusal {
  const { userId, answers, quorum } = approval
  if (given.userId === userId) return 'own_request'
  if (!isPending(approval, given.time)) return 'not_pending'
  if (answers.some((one) => one.userId === given.userId)) return 'answered_already'
  const { duration: shorter = approval.duration, ...answer } = given
  const all = [...answers, answer]
  if (!given.approved) {
    const ended = { time: given.time, by: given.userName, comment: given.comment }
    return { ...approval, answers: all, state: 'rejected', ended }
  }
  const duration = Math.min(approval.duration, shorter)
  const approvers = new Set(all.map((one) => one.userId))
  if (approvers.size < quorum) return { ...approval, answers: all, duration }
  return { ...approval, answers: all, duration, state: 'accepted', begin: approval.begin ?? given.time }
}

/** Returns the approval cancelled, or revoked if it was accepted; or why it cannot be. */
export function cancelled(
  approval: Approval,
  { by, comment, time }: { by: string; comment: string; time: number },
): Approval | Refusal {
  const end = endOf(approval) ?? Number.POSITIVE_INFINITY
  const isOpen = isPending(approval, time) || (approval.state === 'accepted' && time < end)
  return isOpen ? { ...approval, state: 'cancelled', ended: { by, comment, time } } : 'not_pending'
}

/** Returns the approval expired, or `not_pending`. */
export function expired(approval: Approval, now: number): Approval | Refusal {
  if (approval.state !== 'pending' || now < approval.answerBy) return 'not_pending'
  return { ...approval, state: 'expired', ended: { by: '', comment: '', time: approval.answerBy } }
}

/** Returns until when a request has to be answered; `timeout` in seconds, 0 for as long as it makes sense. */
export function answerTime(
  { created, begin, duration }: Pick<Approval, 'created' | 'begin' | 'duration'>,
  timeout: number,
): number {
  const end = (begin ?? created) + duration
  return timeout === 0 ? end : Math.min(end, created + timeout * SECOND)
}

/** Control characters but line feeds, lone surrogates, and marks that change the direction of text. */
const UNSAFE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffd]/u

/** Returns the problem of a comment, or undefined. */
export function commentFlaw(comment: string): string | undefined {
  if (comment.length > MAX_COMMENT) return `the comment is longer than ${MAX_COMMENT} characters`
  const lines = comment.split('\n')
  if (lines.length > MAX_COMMENT_LINES) return `the comment has more than ${MAX_COMMENT_LINES} lines`
  return lines.some((line) => UNSAFE.test(line))
    ? 'the comment holds control characters or marks of direction'
    : undefined
}

/** Returns the problem of a ticket, or undefined. */
export function ticketFlaw(ticket: string): string | undefined {
  if (ticket.length > MAX_TICKET_TEXT) return `the ticket is longer than ${MAX_TICKET_TEXT} characters`
  return UNSAFE.test(ticket) ? 'the ticket has one line, without control characters' : undefined
}

/** Whether an authorization asks for a part of the user's reason. */
export type Wanted = 'none' | 'optional' | 'mandatory'

/** A reason with its problem, if there is one. Duration in seconds. */
export function reasonFlaw(
  reason: { comment: string; ticket: string; duration?: number },
  wanted: { comment: Wanted; ticket: Wanted },
): string | undefined {
  if (wanted.comment === 'mandatory' && reason.comment.trim() === '') return 'a comment is needed'
  if (wanted.ticket === 'mandatory' && reason.ticket.trim() === '') return 'a ticket is needed'
  const { duration } = reason
  if (duration !== undefined && (duration * SECOND < MIN_DURATION || duration * SECOND > MAX_DURATION))
    return `the duration is 1 to ${MAX_DURATION / SECOND} seconds`
  return commentFlaw(reason.comment) ?? ticketFlaw(reason.ticket)
}
