/**
 * The options that either end of a Telnet connection accepts, and those that it requests. All others are
 * refused.
 */
import { OPTION } from './numbers.ts'

/** The end that has the option: this one (WILL, WONT) or the peer. */
export type Side = 'ours' | 'theirs'

export interface Role {
  ours: ReadonlySet<number>
  theirs: ReadonlySet<number>
  /** The options requested at the start, in this order. */
  offers: readonly { side: Side; option: number }[]
}

const { BINARY, ECHO, SGA, TTYPE, NAWS, NEW_ENVIRON } = OPTION

/** Toward a user's client. Requests first, because many clients wait for that. */
export const SERVER: Role = {
  ours: new Set([BINARY, ECHO, SGA]),
  theirs: new Set([BINARY, SGA, TTYPE, NAWS, NEW_ENVIRON]),
  offers: [
    { side: 'ours', option: ECHO },
    { side: 'ours', option: SGA },
    { side: 'theirs', option: SGA },
    { side: 'theirs', option: NAWS },
    { side: 'theirs', option: TTYPE },
    { side: 'theirs', option: NEW_ENVIRON },
    // Without BINARY characters have seven bits.
    { side: 'ours', option: BINARY },
    { side: 'theirs', option: BINARY },
  ],
}

/**
 * Toward a target. Waits for its requests, because the service there may not speak Telnet at all. The
 * environment is refused: it has allowed logins without a password (CVE-2026-24061 of inetutils).
 */
export const CLIENT: Role = {
  ours: new Set([BINARY, SGA, TTYPE, NAWS]),
  theirs: new Set([BINARY, ECHO, SGA]),
  offers: [],
}
