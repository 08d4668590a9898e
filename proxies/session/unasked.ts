/** Words for answers of the gate to which a front has no dialog. */
import type { OpenAnswer } from '../../src/contract/gate.ts'

export function refusalOf(
  answer: Extract<OpenAnswer, { result: 'reason_needed' | 'approval_pending' }>,
): string {
  if (answer.result === 'approval_pending') return answer.wait.lines.join('\n')
  return answer.question.flaw ?? `${answer.question.target} asks for a reason`
}
