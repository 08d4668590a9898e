/** The questions that a user answers on a terminal before there is a target. */
import type {
  Challenge,
  FactorAnswers,
  Logon,
  LogonQuestion,
  Reason,
  ReasonQuestion,
} from '../../../src/contract/gate.ts'
import { howToAsk, isOptional } from '../../wording/reason.ts'
import { FactorDialog } from './factor-dialog.ts'
import { FACTOR_TIMEOUT_MS, LOGON_TIMEOUT_MS, REASON_TIMEOUT_MS } from './limits.ts'
import { LogonDialog } from './logon-dialog.ts'
import { ReasonDialog } from './reason-dialog.ts'

const HOW_TO_PROVE =
  'name the target at the sign-in, by a client that answers keyboard-interactive (not BatchMode), or use a terminal'

/** A login at the target, the reason of the session, or a second factor. */
export type Question = { logon: LogonQuestion } | { reason: ReasonQuestion } | { factor: Challenge }

/** The answer to a question. */
export type Given = { logon: Logon } | { reason: Reason } | { factor: FactorAnswers }

export type Dialog = LogonDialog | ReasonDialog | FactorDialog

export function dialogOf(question: Question): Dialog {
  if ('factor' in question) return new FactorDialog(question.factor)
  return 'logon' in question ? new LogonDialog(question.logon) : new ReasonDialog(question.reason)
}

/** Returns the time for the answer, in milliseconds. */
export function timeFor(question: Question): number {
  if ('factor' in question) return FACTOR_TIMEOUT_MS
  return 'logon' in question ? LOGON_TIMEOUT_MS : REASON_TIMEOUT_MS
}

/** Whether there is no session without an answer. */
export function isNeeded(question: Question): boolean {
  return !('reason' in question) || !isOptional(question.reason)
}

/** Returns the text for a client without a terminal. `text`: for any other question. */
export function wordsFor(question: Question, text: string): string {
  if ('factor' in question) return `${text}, and there is no terminal to type it: ${HOW_TO_PROVE}`
  return 'logon' in question ? text : howToAsk(question.reason)
}
