/** Reasons of a session's end caused by its target, as texts for the user. */
import type { SessionResult } from '../../session/session.ts'
import { ERROR_INFO } from '../codec/session-pdus.ts'
import { CLOSED_BEFORE_DRAWING, wordsOfErrorInfo } from '../connection/error-info.ts'

/** Codes of an end that the user requested from the target. */
const BY_USER: ReadonlySet<number> = new Set([
  ERROR_INFO.none,
  ERROR_INFO.disconnectedByUser,
  ERROR_INFO.loggedOffByUser,
])

export interface SessionEnd {
  result: SessionResult
  reason?: string
  /** Code for Set Error Info. */
  code?: number
}

/** Returns the end after a disconnect message. `errorInfo`: the last Set Error Info, or 0. */
export function endByTarget(errorInfo: number): SessionEnd {
  if (BY_USER.has(errorInfo)) return { result: 'success' }
  const reason = `the target has ended the session: ${wordsOfErrorInfo(errorInfo)}`
  return { result: 'failure', reason, code: errorInfo }
}

/** Returns the end after the connection has closed. `isBlank`: the target has not drawn on its desktop. */
export function endOfConnection(errorInfo: number, failure: Error | undefined, isBlank: boolean): SessionEnd {
  if (errorInfo !== ERROR_INFO.none) return endByTarget(errorInfo)
  if (failure) return { result: 'failure', reason: `the target's connection broke: ${failure.message}` }
  if (isBlank) return { result: 'failure', reason: `there is no desktop: ${CLOSED_BEFORE_DRAWING}` }
  return { result: 'failure', reason: 'the target closed the connection' }
}
