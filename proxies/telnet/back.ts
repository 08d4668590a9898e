/** The Telnet client's side toward the target. */

import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { dial } from '../net/dial.ts'
import { nameOf, type TerminalBack, terminalTarget } from '../terminal/back.ts'
import { TelnetWire } from './wire.ts'

export function telnetBack(urgent: UrgentData): TerminalBack {
  return async (session, signal) => {
    const { host, port } = session.target
    const name = nameOf(session)
    const socket = await dial(host, port, { name, signal, urgent })
    return terminalTarget({
      session,
      socket,
      urgent,
      name,
      protocol: 'Telnet',
      wire: (around) => new TelnetWire(around),
    })
  }
}
