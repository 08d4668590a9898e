/** The RDP proxy as the broker starts it: its listener, and the connections behind it. */
import type { Gate } from '../../src/contract/gate.ts'
import type { Connections } from '../session/connections.ts'
import { RdpConnection } from './connection.ts'
import { RdpFront, type RdpFrontSecurity } from './front/front.ts'

export interface RdpProxyOptions {
  gate: Gate
  connections: Connections
  security: RdpFrontSecurity
  /** The name that the bastion shows itself by. */
  bastion: string
  loginGraceMs: number
  motd: string | undefined
}

export class RdpProxy {
  readonly #front: RdpFront
  /** The message of the day, for who signs in from now on. */
  motd: string | undefined

  constructor({ gate, connections, security, bastion, loginGraceMs, motd }: RdpProxyOptions) {
    this.motd = motd
    this.#front = new RdpFront({
      gate,
      bastion,
      loginGraceMs,
      security,
      onClient: (arrival) => {
        const signedIn = (identity: string): void => {
          arrival.signedIn()
          connections.add(connection, identity)
        }
        const onClosed = (): void => connections.remove(connection)
        const { motd } = this
        const options = { ...arrival, gate, connections, bastion, signedIn, onClosed }
        const connection = new RdpConnection({ ...options, ...(motd !== undefined && { motd }) })
        connection.begin()
      },
    })
  }

  /** Resolves when the port is bound; rejects with the system's error. */
  listen(host: string, port: number): Promise<{ address: string; port: number }> {
    return this.#front.listen(host, port)
  }

  /** For connections from now on. */
  set security(security: RdpFrontSecurity) {
    this.#front.security = security
  }

  /** Takes no more connections, and drops those that have not signed in. */
  close(): void {
    this.#front.close()
  }

  /** Drops every connection that is left. */
  destroy(): void {
    this.#front.destroy()
  }
}
