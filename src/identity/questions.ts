/** Questions of a server in one sign-in: those that come again show that the answer before was wrong, as the server does not say. */
import type { MethodPrompt } from './methods/method.ts'

/** Questions of one server that are no failure whatever their words: of a next code, or of a new PIN and once more. */
export const MAX_UNCOUNTED = 4

/** The last question of a server. */
export interface Question {
  /** Its letters alone, since numbers and marks change from one to the next. */
  words: string
  /** Questions of the server so far. */
  count: number
  /** Whether the answer before it counts as a failure. */
  isAgain: boolean
}

/** Returns the question after `before`. `answered`: the one that the password of the sign-in was the answer to. */
export function questionAfter(
  before: Question | undefined,
  prompts: readonly MethodPrompt[],
  answered?: string,
): Question {
  const words = wordsOf(prompts.map(({ text }) => text).join(' '))
  const last = before?.words ?? (answered === undefined ? undefined : wordsOf(answered))
  const count = (before?.count ?? 0) + 1
  return { words, count, isAgain: words === last || MAX_UNCOUNTED < count }
}

function wordsOf(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}]+/gu, ' ')
    .trim()
}
