/** Errors that a user reads if the target cannot be reached. */

import { harmless } from '../../recordings/decode/terminal/filter.ts'

/** Characters of a target's own text that are shown to a user. */
const MAX_WORDS = 500

/** Returns a target's text for a terminal: bounded, with control characters as `\u001b`. */
export function wordsOf(text: string): string {
  const shown = harmless(text.slice(0, MAX_WORDS))
  return text.length > MAX_WORDS ? `${shown}…` : shown
}

/**
 * The message is for the user: it uses the user's name of the target and never contains the credential. Text
 * of the target is included through `wordsOf`.
 */
export class TargetError extends Error {
  override name = 'TargetError'
}

/** The target rejected the credential of the session. */
export class CredentialRefusedError extends TargetError {
  override name = 'CredentialRefusedError'
}

/** Replaces details that only an administrator should read; the audit log has those. */
export const INTERNAL = 'the bastion has an internal problem, try again later'
