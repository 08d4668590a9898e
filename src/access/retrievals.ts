/** Which authorization lets a user check a secret out: the rules of sessions (targets.ts), for accounts. Pure. */

import type { Wanted } from '../model/approvals.ts'
import { quorumNow, wantedOf } from '../model/conditions.ts'
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
}

/** Returns the terms, or undefined if no authorization counts now. `approved`: that of an accepted approval. */
export function retrievalTerms(
  all: readonly Retrieval[],
  { approved, isOutside = false }: Counting = {},
): RetrievalTerms | undefined {
  const quorumOf = ({ conditions }: Retrieval) => quorumNow(conditions, !isOutside)
  const open = all.filter((one) => quorumOf(one) === 0)
  const asking = all.find((one) => (quorumOf(one) ?? 0) > 0)
  const counting =
    approved === undefined
      ? open.length > 0
        ? open
        : asking
          ? [asking]
          : []
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
  }
}

/** Returns the terms at this time: of the authorizations within their timeframes, else of one that approvers open outside. */
export function retrievalTermsAt(all: readonly Retrieval[], now: number): RetrievalTerms | undefined {
  const isWithin = ({ timeframes }: Retrieval) => doHold(timeframes, now)
  const outside = () => all.filter((one) => !isWithin(one))
  return retrievalTerms(all.filter(isWithin)) ?? retrievalTerms(outside(), { isOutside: true })
}
