/** Rounds that pages draw by themselves, in the user's language; other fronts show message and prompts. */

/** A request to a security key (WebAuthn 5.5), binary values in base64url. */
export interface KeyRequest {
  challenge: string
  /** Host name for which the keys were made. */
  rpId: string
  keys: readonly { id: string; transports: readonly string[] }[]
}

export type RoundForm =
  /** A one-time code or a recovery code, if the user has codes, or the answer of a security key as JSON. */
  | { kind: 'code'; hasCodes: boolean; key?: KeyRequest }
  /** The first code of an authenticator that takes over `secret`. */
  | { kind: 'enrol'; secret: string; isAgain: boolean }
  /** Recovery codes, to be noted down. */
  | { kind: 'recovery_codes'; codes: readonly string[] }
