/** The SSH proxy as the broker starts it: one listener, its connections, and the gate's notices to them. */
import type { Socket } from 'node:net'
import type { Gate } from '../../src/gate/messages.ts'
import { Door } from '../accept.ts'
import { SshConnection } from './connection.ts'
import { SshFront } from './front.ts'
import { LINGER_MS, MAX_EARLY_NOTICES } from './limits.ts'
import type { SshSession } from './session.ts'

export interface SshProxyOptions {
  gate: Gate
  /** Private host keys in OpenSSH's PEM form, one of a type, in the order of preference. */
  hostKeys: string[]
  /** Keys that clients are told of before they are used. */
  nextHostKeys?: string[]
  /** What every client is shown before it signs in. */
  banner?: string
  loginGraceMs: number
}

/** Says what it is and not which version. */
const IDENT = 'Sallyport'

export class SshProxy {
  readonly #front: SshFront
  readonly #door: Door
  readonly #connections = new Set<SshConnection>()
  readonly #sessions = new Map<string, SshSession>()
  /** Why sessions have to end that the gate has opened and that are still being begun here. */
  readonly #early = new Map<string, string>()

  constructor(options: SshProxyOptions) {
    const { gate } = options
    this.#front = new SshFront({
      gate,
      hostKeys: options.hostKeys,
      ...(options.nextHostKeys && { nextHostKeys: options.nextHostKeys }),
      ...(options.banner !== undefined && { banner: options.banner }),
      ident: IDENT,
      onSignedIn: (identity, source, client, socket: Socket) => {
        this.#door.signedIn(socket)
        const connection: SshConnection = new SshConnection({
          gate,
          identity,
          source,
          client,
          ident: IDENT,
          onSession: (id, session) => this.#register(id, session),
          onGone: () => this.#connections.delete(connection),
        })
        this.#connections.add(connection)
      },
    })
    this.#door = new Door({
      graceMs: options.loginGraceMs,
      onSocket: (socket) => this.#front.accept(socket),
    })
    gate.onNotice(({ session: id, reason }) => {
      const session = this.#sessions.get(id)
      if (session) session.stop('killed', reason)
      else if (this.#early.size < MAX_EARLY_NOTICES) this.#early.set(id, reason)
    })
  }

  #register(id: string, session: SshSession | undefined): void {
    const reason = this.#early.get(id)
    this.#early.delete(id)
    if (!session) {
      this.#sessions.delete(id)
      return
    }
    this.#sessions.set(id, session)
    if (reason !== undefined) session.stop('killed', reason)
  }

  /** Resolves when the port is bound; rejects with the system's error. */
  listen(host: string, port: number): Promise<{ address: string; port: number }> {
    return this.#door.listen(host, port)
  }

  /** For connections from now on. */
  set banner(banner: string | undefined) {
    this.#front.banner = banner
  }

  get connections(): number {
    return this.#connections.size
  }

  /** No new connections; running ones get `graceMs`, then they are ended with the reason. Resolves at the end. */
  async drain(graceMs: number, reason: string): Promise<void> {
    this.#door.close()
    await this.#emptied(graceMs)
    for (const connection of this.#connections) connection.stop('killed', reason)
    await this.#emptied(LINGER_MS)
    this.#door.destroy()
    await this.#emptied(LINGER_MS)
  }

  async #emptied(withinMs: number): Promise<void> {
    const until = Date.now() + withinMs
    while (this.#connections.size > 0 && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
