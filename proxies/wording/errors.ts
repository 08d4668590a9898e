/** What a user is told when there is no way to the target. */

import { harmless } from '../../recordings/decode/terminal/filter.ts'

/** Characters of a target's own words that a user reads. */
const MAX_WORDS = 500

/** A target's words for a terminal: bounded, their control characters as `\u001b`. */
export function wordsOf(text: string): string {
  const shown = harmless(text.slice(0, MAX_WORDS))
  return text.length > MAX_WORDS ? `${shown}…` : shown
}

/**
 * The message is for the user: it names the target as the user does and never the credential. What the target said is in
 * it by `wordsOf`.
 */
export class TargetError extends Error {
  override name = 'TargetError'
}

/** The target did not take what the session signs in with. */
export class CredentialRefusedError extends TargetError {
  override name = 'CredentialRefusedError'
}

/** Instead of what only an administrator should read; that is in the audit log. */
export const INTERNAL = 'the bastion has an internal problem, try again later'
