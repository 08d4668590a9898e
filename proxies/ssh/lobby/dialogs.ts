/** The questions that a user answers on a terminal before there is a target. */
import type { Logon, LogonQuestion, Reason, ReasonQuestion } from '../../../src/contract/gate.ts'
import { howToAsk, isOptional } from '../../wording/reason.ts'
import { LOGON_TIMEOUT_MS, REASON_TIMEOUT_MS } from './limits.ts'
import { LogonDialog } from './logon-dialog.ts'
import { ReasonDialog } from './reason-dialog.ts'

/** A login at the target, or the reason of the session. */
export type Question = { logon: LogonQuestion } | { reason: ReasonQuestion }

/** The answer to a question. */
export type Given = { logon: Logon } | { reason: Reason }

export function dialogOf(question: Question): LogonDialog | ReasonDialog {
  return 'logon' in question ? new LogonDialog(question.logon) : new ReasonDialog(question.reason)
}

/** Returns the time for the answer, in milliseconds. */
export function timeFor(question: Question): number {
  return 'logon' in question ? LOGON_TIMEOUT_MS : REASON_TIMEOUT_MS
}

/** Whether there is no session without an answer. */
export function isNeeded(question: Question): boolean {
  return 'logon' in question || !isOptional(question.reason)
}

/** Returns the text for a client without a terminal. `text`: for any other question. */
export function wordsFor(question: Question, text: string): string {
  return 'logon' in question ? text : howToAsk(question.reason)
}
