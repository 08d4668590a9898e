/** The gate's answers without a session: a refusal, or what is needed first. */
import type {
  ApprovalWait,
  Challenge,
  Logon,
  LogonQuestion,
  OpenAnswer,
  OpenRequest,
  ReasonQuestion,
} from '../../src/contract/gate.ts'
import { wishOf } from '../wording/reason.ts'

/** The parts of a request to open a session that its user may choose. */
export type Choice = Pick<OpenRequest, 'target' | 'logon' | 'reason' | 'approval' | 'factor'>

/** Why there is no session. With one of the others the user may go on. */
export interface Refusal {
  message: string
  /** Another login at the target may succeed. */
  question?: LogonQuestion
  /** The user has to give a reason. */
  reason?: ReasonQuestion
  /** Approvers were asked. */
  wait?: ApprovalWait
  /** The user has to prove a second factor. */
  factor?: Challenge
}

/** `choice`: of the request. */
export function refusalOf(answer: Exclude<OpenAnswer, { result: 'opened' }>, choice: Choice): Refusal {
  switch (answer.result) {
    case 'denied':
      return { message: answer.message }
    case 'reason_needed':
      return { message: answer.question.flaw ?? wishOf(answer.question), reason: answer.question }
    case 'approval_pending':
      return { message: answer.wait.lines.join('\n'), wait: answer.wait }
    case 'factor_needed':
      return { message: `${answer.target} needs a second factor`, factor: answer.challenge }
    case 'logon_needed':
      return logonRefusal(answer.question, choice.logon)
  }
}

/** `typed`: the login that was tried, if any. */
function logonRefusal(question: LogonQuestion, typed: Logon | undefined): Refusal {
  const what = question.login === undefined ? 'login and password' : `password of ${question.login}`
  const flaw = question.flaw ?? `${question.target} asks for the ${what}`
  return { message: flaw, question: typed ? { ...question, flaw } : question }
}
