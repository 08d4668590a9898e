/** The RDP proxy as the broker starts it: its listener, and the connections behind it. */
import type { Gate } from '../../src/gate/messages.ts'
import type { Connections } from '../connections.ts'
import { RdpConnection } from './connection.ts'
import { RdpFront, type RdpFrontSecurity } from './front.ts'

export interface RdpProxyOptions {
  gate: Gate
  connections: Connections
  security: RdpFrontSecurity
  /** The name that the bastion shows itself by. */
  bastion: string
  loginGraceMs: number
}

export class RdpProxy {
  readonly #front: RdpFront

  constructor({ gate, connections, security, bastion, loginGraceMs }: RdpProxyOptions) {
    this.#front = new RdpFront({
      gate,
      bastion,
      loginGraceMs,
      security,
      onClient: (arrival) => {
        const signedIn = (): void => {
          arrival.signedIn()
          connections.add(connection)
        }
        const onGone = (): void => connections.remove(connection)
        const options = { ...arrival, gate, connections, bastion, signedIn, onGone }
        const connection = new RdpConnection(options)
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
