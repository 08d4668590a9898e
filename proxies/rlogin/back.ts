/** The rlogin client's side toward the target. */

import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { dial } from '../net/dial.ts'
import { nameOf, type TerminalBack, terminalTarget } from '../terminal/back.ts'
import { RloginWire } from './wire.ts'

/** Names no user, so that no host trusts it. */
const NOBODY = '?'

export function rloginBack(urgent: UrgentData): TerminalBack {
  return async (session, signal) => {
    const { isPersonal } = session
    const { host, port, login } = session.target
    const { clientUser, privilegedPort } = session.loginOptions
    const name = nameOf(session)
    const socket = await dial(host, port, { name, signal, urgent, privilegedPort })
    // Never the name from the user's own client, because a target that trusts hosts believes it. A user that
    // types a login has to know its password.
    const names = { clientUser: isPersonal ? NOBODY : clientUser || login, serverUser: login }
    return terminalTarget({
      session,
      socket,
      urgent,
      name,
      protocol: 'rlogin',
      isNamed: true,
      wire: (around) => new RloginWire(around, names),
    })
  }
}
