/** The rlogin client's side toward the target. */
import type { Gate } from '../../src/contract/gate.ts'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { dial, dialByBroker } from '../net/dial.ts'
import { nameOf, type TerminalBack, terminalTarget } from '../terminal/back.ts'
import { RloginWire } from './wire.ts'

/** Names no user, so that no host trusts it. */
const NOBODY = '?'

/** `gate` connects where the target asks for a port that only the broker may use. */
export function rloginBack(urgent: UrgentData, gate: Pick<Gate, 'dial'>): TerminalBack {
  return async (session, signal) => {
    const { isPersonal } = session
    const { host, port, login } = session.target
    const { clientUser, privilegedPort } = session.loginOptions
    const name = nameOf(session)
    const options = { name, signal, urgent }
    const socket = privilegedPort
      ? await dialByBroker(() => gate.dial({ session: session.id }), options)
      : await dial(host, port, options)
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
