/** The part that the fronts of terminals and desktops share: the listener, and the source of each connection. */
import type { Socket } from 'node:net'
import type { Source } from '../../src/contract/gate.ts'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { plainAddress } from '../../src/model/networks.ts'
import { Listener } from './listener.ts'

export interface FrontOptions<Security> {
  loginGraceMs: number
  security: Security
  /** Present for protocols with urgent data. */
  urgent?: UrgentData
}

export abstract class Front<Security> {
  readonly #listener: Listener
  /** Applies to new connections. */
  security: Security

  constructor({ loginGraceMs, security, urgent }: FrontOptions<Security>) {
    this.security = security
    this.#listener = new Listener({
      graceMs: loginGraceMs,
      ...(urgent && { urgent }),
      onSocket: (socket) => {
        const { remoteAddress = '', remotePort = 0 } = socket
        this.welcome(socket, { address: plainAddress(remoteAddress), port: remotePort })
      },
    })
  }

  /** Resolves when the port is bound; rejects with the system's error. */
  listen(host: string, port: number): Promise<{ address: string; port: number }> {
    return this.#listener.listen(host, port)
  }

  /** Accepts no more connections, and destroys those that have not signed in. */
  close(): void {
    this.#listener.close()
  }

  /** Destroys all remaining connections. */
  destroy(): void {
    this.#listener.destroy()
  }

  /** Serves a new connection, until it has signed in or is closed. */
  protected abstract welcome(socket: Socket, source: Source): void

  /** Ends the grace time of a connection whose user has signed in. */
  protected signedIn(socket: Socket): void {
    this.#listener.signedIn(socket)
  }
}
