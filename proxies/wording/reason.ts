/** Words about the reason for a session: the fields that a target asks for, and the user's texts. */
import type { Reason, ReasonQuestion } from '../../src/contract/gate.ts'
import { printable } from './line-input.ts'

export type ReasonField = 'comment' | 'ticket' | 'duration'

const LABELS: Record<ReasonField, string> = {
  comment: 'Comment',
  ticket: 'Ticket',
  duration: 'For how long, such as 45m or 2h',
}
const SECONDS: Readonly<Record<string, number>> = { '': 60, s: 1, m: 60, h: 3600, d: 86_400 }

/** Returns the fields to ask for, in their order. */
export function reasonFields(question: ReasonQuestion): { field: ReasonField; label: string }[] {
  const fields: ReasonField[] = []
  if (question.comment !== 'none') fields.push('comment')
  if (question.ticket !== 'none') fields.push('ticket')
  if (question.asksDuration) fields.push('duration')
  return fields.map((field) => ({
    field,
    label: `${LABELS[field]}${isMandatory(question, field) ? '' : ' (optional)'}`,
  }))
}

/** Whether the gate opens nothing without it. */
export function isMandatory(question: ReasonQuestion, field: ReasonField): boolean {
  return field !== 'duration' && question[field] === 'mandatory'
}

/** Whether the user may leave all of it out. */
export function isOptional(question: ReasonQuestion): boolean {
  return question.comment !== 'mandatory' && question.ticket !== 'mandatory'
}

export const NO_REASON: Reason = { comment: '', ticket: '' }

/** Returns the error in the text of a field, or undefined if there is none. */
export function flawOfField(question: ReasonQuestion, field: ReasonField, text: string): string | undefined {
  const typed = text.trim()
  if (field === 'duration') {
    return typed === '' || secondsOf(typed) !== undefined
      ? undefined
      : 'expected a time such as 45m, 2h or 1d, or nothing'
  }
  return typed === '' && isMandatory(question, field) ? `the ${field} may not be empty` : undefined
}

/** Returns the reason of valid texts. */
export function reasonOf(texts: Partial<Record<ReasonField, string>>): Reason {
  const { comment = '', ticket = '', duration = '' } = texts
  const seconds = secondsOf(duration.trim())
  return {
    comment: comment.trim(),
    ticket: ticket.trim(),
    ...(seconds !== undefined && { duration: seconds }),
  }
}

/** Reads `90` (minutes), `90s`, `45m`, `2h` or `1d`. */
function secondsOf(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,6}) ?([smhd]?)$/i.exec(text) ?? []
  const seconds = Number(digits) * (SECONDS[unit.toLowerCase()] ?? 0)
  return seconds > 0 ? seconds : undefined
}

/** Returns what the target asks for. */
export function wishOf(question: ReasonQuestion): string {
  const wanted = (['comment', 'ticket'] as const).filter((field) => question[field] !== 'none')
  const what = wanted.length === 0 ? 'reason' : wanted.join(' and a ')
  return `${printable(question.target)} asks for a ${what}`
}

/** Returns what a client without a terminal can do instead. */
export function howToAsk(question: ReasonQuestion): string {
  const target = printable(question.target)
  const flags = (['comment', 'ticket'] as const)
    .filter((field) => isMandatory(question, field))
    .map((field) => ` --${field} ${field.toUpperCase()}`)
    .join('')
  return `${wishOf(question)}, and there is no terminal to type it: ask beforehand by "sallyport approvals request ${target}${flags}" or POST /approvals, or use a terminal`
}

/** Lines of a notice that are shown at most, and the characters of each. */
const MAX_LINES = 24
const MAX_COLUMNS = 400

/** Returns a text of the gate, which may have words of approvers, as harmless lines. */
export function noticeLines(text: string): string[] {
  return text
    .slice(0, MAX_LINES * MAX_COLUMNS)
    .split(/\r?\n/)
    .slice(0, MAX_LINES)
    .map((line) => printable(line.slice(0, MAX_COLUMNS)).trimEnd())
    .filter((line) => line !== '')
}

/** Returns the same for a terminal or for standard error. */
export function noticeText(text: string): string {
  return noticeLines(text)
    .map((line) => `sallyport: ${line}\r\n`)
    .join('')
}
