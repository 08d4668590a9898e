/** How a session has ended that its target has ended, in words for the user. */
import type { SessionResult } from '../../session/session.ts'
import { ERROR_INFO } from '../codec/session-pdus.ts'
import { CLOSED_BEFORE_DRAWING, wordsOfErrorInfo } from '../connection/error-info.ts'

/** The target has ended the session as its user wanted it to. */
const BY_USER: ReadonlySet<number> = new Set([
  ERROR_INFO.none,
  ERROR_INFO.disconnectedByUser,
  ERROR_INFO.loggedOffByUser,
])

export interface SessionEnd {
  result: SessionResult
  reason?: string
  /** For Set Error Info. */
  code?: number
}

/** By its disconnect message. `errorInfo`: what it has said before, or 0. */
export function endByTarget(errorInfo: number): SessionEnd {
  if (BY_USER.has(errorInfo)) return { result: 'success' }
  const reason = `the target has ended the session: ${wordsOfErrorInfo(errorInfo)}`
  return { result: 'failure', reason, code: errorInfo }
}

/** By the end of its connection. `isBlank`: there is a desktop that it has not drawn on. */
export function endOfConnection(errorInfo: number, failure: Error | undefined, isBlank: boolean): SessionEnd {
  if (errorInfo !== ERROR_INFO.none) return endByTarget(errorInfo)
  if (failure) return { result: 'failure', reason: `the target's connection broke: ${failure.message}` }
  if (isBlank) return { result: 'failure', reason: `there is no desktop: ${CLOSED_BEFORE_DRAWING}` }
  return { result: 'failure', reason: 'the target closed the connection' }
}
