/** Rounds that pages draw by themselves. */

/** Kind of a round, for pages, which show it in the user's language; other fronts show message and prompts. */
export type RoundForm =
  /** A one-time code, or a recovery code. */
  | { kind: 'code' }
  /** The first code of an authenticator that takes over `secret`. */
  | { kind: 'enrol'; secret: string; isAgain: boolean }
  /** Recovery codes, to be noted down. */
  | { kind: 'recovery_codes'; codes: readonly string[] }
