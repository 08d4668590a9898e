/** Starts connections that use SSH's connection layer, after sign-in at the SSH front or on a terminal. */
import type { Gate } from '../../src/contract/gate.ts'
import type { Connections } from '../session/connections.ts'
import type { TerminalBacks } from '../terminal/back.ts'
import { type ConnectionOptions, SshConnection } from './connection.ts'

/** Names the product but not its version. */
export const IDENT = 'Sallyport'

export interface SshConnectionsOptions {
  gate: Gate
  connections: Connections
  /** Connectors for targets that do not speak SSH. */
  backs: TerminalBacks
  /** Shown to a terminal once, after sign-in. */
  motd?: string
}

export class SshConnections {
  readonly #options: SshConnectionsOptions
  /** Applies to new connections. */
  motd: string | undefined

  constructor(options: SshConnectionsOptions) {
    this.#options = options
    this.motd = options.motd
  }

  /** Starts the connection of a user that has signed in. */
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
