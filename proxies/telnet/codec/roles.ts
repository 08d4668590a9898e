/** What either end of a Telnet connection agrees to, and what it asks for by itself. Everything else is refused. */
import { OPTION } from './numbers.ts'

/** Whose option it is: this end's (WILL, WONT say it here) or the peer's. */
export type Side = 'ours' | 'theirs'

export interface Role {
  ours: ReadonlySet<number>
  theirs: ReadonlySet<number>
  /** Asked for at the start, in this order. */
  offers: readonly { side: Side; option: number }[]
}

const { BINARY, ECHO, SGA, TTYPE, NAWS, NEW_ENVIRON } = OPTION

/** Toward a person's client. It speaks first, for many clients wait to be asked. */
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
    // Without it characters have seven bits.
    { side: 'ours', option: BINARY },
    { side: 'theirs', option: BINARY },
  ],
}

/**
 * Toward a target. It waits to be asked, for what listens there may not speak Telnet at all. The environment is refused:
 * by it clients have logged in without a password (CVE-2026-24061 of inetutils).
 */
export const CLIENT: Role = {
  ours: new Set([BINARY, SGA, TTYPE, NAWS]),
  theirs: new Set([BINARY, ECHO, SGA]),
  offers: [],
}
