/** The VNC proxy: its front, and the connections of signed-in users. */
import type { Socket } from 'node:net'
import type { Gate } from '../../src/contract/gate.ts'
import type { Connections, ProxyConnection } from '../session/connections.ts'
import { VncConnection } from './connection.ts'
import { VncFront, type VncFrontSecurity } from './front.ts'
import { GuestConnection } from './guest-connection.ts'
import type { SharedSession } from './guests/shared-session.ts'

export interface VncProxyOptions {
  gate: Gate
  connections: Connections
  security: VncFrontSecurity
  /** The name that the bastion shows. */
  bastion: string
  loginGraceMs: number
}

export class VncProxy {
  readonly #front: VncFront

  constructor({ gate, connections, security, bastion, loginGraceMs }: VncProxyOptions) {
    const rooms = new Map<string, SharedSession>()
    this.#front = new VncFront({
      gate,
      loginGraceMs,
      security,
      bastion,
      onSignedIn: (signedIn) => {
        const options = { ...signedIn, gate, bastion, rooms, onClosed: () => connections.remove(connection) }
        const { guest } = signedIn.identity
        const connection: ProxyConnection = guest
          ? new GuestConnection({ ...options, guest })
          : new VncConnection({ ...options, connections })
        connections.add(connection, signedIn.identity.token)
      },
    })
  }

  /** Takes over an accepted connection, of which nothing has been read, and returns its socket. */
  accept(handle: object): Socket {
    return this.#front.accept(handle)
  }

  /** Applies to new connections. */
  set security(security: VncFrontSecurity) {
    this.#front.security = security
  }

  /** Accepts no more connections, and drops those that have not signed in. */
  close(): void {
    this.#front.close()
  }

  /** Drops every remaining connection. */
  destroy(): void {
    this.#front.destroy()
  }
}
