/** Those whose sessions go by SSH's connection layer, once they have signed in: at the SSH front, or with a terminal. */
import type { Gate } from '../../src/contract/gate.ts'
import type { Connections } from '../session/connections.ts'
import type { TerminalBacks } from '../terminal/back.ts'
import { type ConnectionOptions, SshConnection } from './connection.ts'

/** Says what it is and not which version. */
export const IDENT = 'Sallyport'

export interface SignedInOptions {
  gate: Gate
  connections: Connections
  /** The ways to targets that do not speak SSH. */
  backs: TerminalBacks
  /** What a terminal is shown once after the sign-in. */
  motd?: string
}

export class SshConnections {
  readonly #options: SignedInOptions
  /** For connections from now on. */
  motd: string | undefined

  constructor(options: SignedInOptions) {
    this.#options = options
    this.motd = options.motd
  }

  /** Somebody has signed in. */
  begin(signedIn: Pick<ConnectionOptions, 'identity' | 'source' | 'protocol' | 'client'>): void {
    const { gate, backs, connections } = this.#options
    const connection: SshConnection = new SshConnection({
      ...signedIn,
      gate,
      connections,
      ident: IDENT,
      backs,
      motd: this.motd,
      onClosed: () => connections.remove(connection),
    })
    connections.add(connection, signedIn.identity.token)
  }
}
