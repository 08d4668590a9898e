/** The reason of a session as a round of prompts during the sign-in, for clients without a terminal. */
import type { Challenge, Reason, ReasonQuestion } from '../contract/gate.ts'

const FIELDS = ['comment', 'ticket'] as const
const LABELS = { comment: 'Comment', ticket: 'Ticket' } as const

function fieldsOf(question: ReasonQuestion): ('comment' | 'ticket')[] {
  return FIELDS.filter((field) => question[field] !== 'none')
}

export function reasonChallengeOf(id: string, question: ReasonQuestion): Challenge {
  const { target, flaw } = question
  const fields = fieldsOf(question)
  const wish = `${target} asks for a ${fields.join(' and a ')}`
  const flags = fields
    .filter((field) => question[field] === 'mandatory')
    .map((field) => ` --${field} ${field.toUpperCase()}`)
    .join('')
  return {
    id,
    title: '',
    instructions: flaw ?? wish,
    prompts: fields.map((field) => ({
      text: `${LABELS[field]}${question[field] === 'optional' ? ' (optional)' : ''}: `,
      echo: true,
    })),
    hint: `${wish}: a client that cannot type it asks beforehand, by "sallyport approvals request ${target}${flags}" or POST /approvals`,
  }
}

/** Reads the answers to such a round. */
export function reasonOf(answers: readonly string[], question: ReasonQuestion): Reason {
  const texts = Object.fromEntries(fieldsOf(question).map((field, index) => [field, answers[index] ?? '']))
  return { comment: (texts['comment'] ?? '').trim(), ticket: (texts['ticket'] ?? '').trim() }
}
