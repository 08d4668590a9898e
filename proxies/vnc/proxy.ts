/** The VNC proxy as the broker starts it: its listener, and the connections of those who have signed in. */
import type { Gate } from '../../src/gate/messages.ts'
import type { Connections } from '../connections.ts'
import { VncConnection } from './connection.ts'
import { VncFront, type VncFrontSecurity } from './front.ts'

export interface VncProxyOptions {
  gate: Gate
  connections: Connections
  security: VncFrontSecurity
  /** The name that the bastion shows itself by. */
  bastion: string
  loginGraceMs: number
}

export class VncProxy {
  readonly #front: VncFront

  constructor({ gate, connections, security, bastion, loginGraceMs }: VncProxyOptions) {
    this.#front = new VncFront({
      gate,
      loginGraceMs,
      security,
      onSignedIn: (signedIn) => {
        const connection: VncConnection = new VncConnection({
          ...signedIn,
          gate,
          connections,
          bastion,
          onGone: () => connections.remove(connection),
        })
        connections.add(connection)
      },
    })
  }

  /** Resolves when the port is bound; rejects with the system's error. */
  listen(host: string, port: number): Promise<{ address: string; port: number }> {
    return this.#front.listen(host, port)
  }

  /** For connections from now on. */
  set security(security: VncFrontSecurity) {
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
