/** The part that the fronts of terminals and desktops share: the arrivals, and the source of each connection. */
import type { Socket } from 'node:net'
import type { Source } from '../../src/contract/gate.ts'
import { plainAddress } from '../../src/model/networks.ts'
import { Arrivals } from './arrivals.ts'

export interface FrontOptions<Security> {
  loginGraceMs: number
  security: Security
}

export abstract class Front<Security> {
  readonly #arrivals: Arrivals
  /** Applies to new connections. */
  security: Security

  constructor({ loginGraceMs, security }: FrontOptions<Security>) {
    this.security = security
    this.#arrivals = new Arrivals({
      graceMs: loginGraceMs,
      onSocket: (socket) => {
        const { remoteAddress = '', remotePort = 0 } = socket
        this.welcome(socket, { address: plainAddress(remoteAddress), port: remotePort })
      },
    })
  }

  /** Takes over an accepted connection, of which nothing has been read, and returns its socket. */
  accept(handle: object): Socket {
    return this.#arrivals.accept(handle)
  }

  /** Takes no more connections, and destroys those that have not signed in. */
  close(): void {
    this.#arrivals.close()
  }

  /** Destroys all remaining connections. */
  destroy(): void {
    this.#arrivals.destroy()
  }

  /** Serves a new connection, until it has signed in or is closed. */
  protected abstract welcome(socket: Socket, source: Source): void

  /** Lets a connection stay that many milliseconds from now without a sign-in. */
  protected waits(socket: Socket, milliseconds: number): void {
    this.#arrivals.waits(socket, milliseconds)
  }

  /** Ends the grace time of a connection whose user has signed in. */
  protected signedIn(socket: Socket): void {
    this.#arrivals.signedIn(socket)
  }
}
