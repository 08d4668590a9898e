/** Which authorization lets a user check a secret out: the rules of sessions (targets.ts), for accounts. Pure. */

import type { Wanted } from '../model/approvals.ts'
import { quorumNow, requiresFactor, wantedOf } from '../model/conditions.ts'
import type { Id } from '../model/objects.ts'
import { doHold } from '../model/timeframes.ts'
import type { Retrieval } from '../store/store.ts'
import type { Counting } from './targets.ts'

export interface RetrievalTerms {
  /** The authorizations that count. */
  authorizationIds: Id[]
  authorizationNames: string[]
  /** Number of approvers that have to agree; absent if none has to. */
  quorum?: number
  /** They are out of their timeframes: only approvers open them. */
  isOutside: boolean
  wanted: { comment: Wanted; ticket: Wanted }
  /** The user has to prove a second factor first. */
  needsFactor: boolean
}

/** Returns the terms, or undefined if no authorization counts now. `approved`: that of an accepted approval. */
export function retrievalTerms(
  all: readonly Retrieval[],
  { approved, isOutside = false, hasFactor }: Counting = {},
): RetrievalTerms | undefined {
  const quorumOf = ({ conditions }: Retrieval) => quorumNow(conditions, !isOutside)
  const isLacking = ({ conditions }: Retrieval) => !hasFactor && requiresFactor(conditions)
  const open = all.filter((one) => quorumOf(one) === 0)
  const askingAll = all.filter((one) => (quorumOf(one) ?? 0) > 0)
  const asking = askingAll.find((one) => !isLacking(one)) ?? askingAll[0]
  const free = open.filter((one) => !isLacking(one))
  const counting =
    approved === undefined
      ? ([free, open].find(({ length }) => length > 0) ?? (asking ? [asking] : []))
      : all.filter(({ authorizationId }) => authorizationId === approved)
  const [first] = counting
  if (!first) return undefined
  const quorum = approved === undefined ? (quorumOf(first) ?? 0) : 0
  return {
    authorizationIds: counting.map(({ authorizationId }) => authorizationId),
    authorizationNames: counting.map(({ authorizationName }) => authorizationName),
    ...(quorum > 0 && { quorum }),
    isOutside,
    wanted: wantedOf(counting.map(({ conditions }) => conditions)),
    needsFactor: counting.some(isLacking),
  }
}

/** Returns the terms at this time: of the authorizations within their timeframes, else of one that approvers open outside. */
export function retrievalTermsAt(
  all: readonly Retrieval[],
  now: number,
  hasFactor = false,
): RetrievalTerms | undefined {
  const isWithin = ({ timeframes }: Retrieval) => doHold(timeframes, now)
  const outside = () => all.filter((one) => !isWithin(one))
  return (
    retrievalTerms(all.filter(isWithin), { hasFactor }) ??
    retrievalTerms(outside(), { isOutside: true, hasFactor })
  )
}
