/** The RDP proxy: its front and its connections. */
import type { Socket } from 'node:net'
import type { Gate } from '../../src/contract/gate.ts'
import type { Connections } from '../session/connections.ts'
import { RdpConnection } from './connection.ts'
import { RdpFront, type RdpFrontSecurity } from './front/front.ts'

export interface RdpProxyOptions {
  gate: Gate
  connections: Connections
  security: RdpFrontSecurity
  /** The bastion's name on its screens. */
  bastion: string
  loginGraceMs: number
  motd: string | undefined
}

export class RdpProxy {
  readonly #front: RdpFront
  /** The message of the day, for later sign-ins. */
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

  /** Takes over an accepted connection, of which nothing has been read, and returns its socket. */
  accept(handle: object): Socket {
    return this.#front.accept(handle)
  }

  /** Replaces the settings for new connections. */
  set security(security: RdpFrontSecurity) {
    this.#front.security = security
  }

  /** Stops accepting connections, and destroys those that have not signed in. */
  close(): void {
    this.#front.close()
  }

  /** Destroys all remaining connections. */
  destroy(): void {
    this.#front.destroy()
  }
}
