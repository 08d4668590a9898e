/** All who have signed in, by whichever front: their connections, and the gate's notices to their sessions. */
import type { Gate, GateNotice } from '../../src/gate/messages.ts'
import type { TerminalBacks } from '../terminal/back.ts'
import { type ConnectionOptions, SshConnection } from './connection.ts'
import { EarlyNotices } from './early-notices.ts'
import { LINGER_MS } from './limits.ts'
import type { SshSession } from './session.ts'

/** Says what it is and not which version. */
export const IDENT = 'Sallyport'

export interface ConnectionsOptions {
  gate: Gate
  /** The ways to targets that do not speak SSH. */
  backs: TerminalBacks
  /** What a terminal is shown once after the sign-in. */
  motd?: string
}

export class Connections {
  readonly #options: ConnectionsOptions
  readonly #connections = new Set<SshConnection>()
  readonly #sessions = new Map<string, SshSession>()
  readonly #early = new EarlyNotices()
  /** For connections from now on. */
  motd: string | undefined

  constructor(options: ConnectionsOptions) {
    this.#options = options
    this.motd = options.motd
    options.gate.onNotice((notice) => this.#noticed(notice))
  }

  /** Somebody has signed in. */
  begin(signedIn: Pick<ConnectionOptions, 'identity' | 'source' | 'protocol' | 'client'>): void {
    const { gate, backs } = this.#options
    const connection: SshConnection = new SshConnection({
      ...signedIn,
      gate,
      ident: IDENT,
      backs,
      motd: this.motd,
      onSession: (id, session) => this.#register(id, session),
      onGone: () => this.#connections.delete(connection),
    })
    this.#connections.add(connection)
  }

  get count(): number {
    return this.#connections.size
  }

  /** Connections get `graceMs`, then they are ended with the reason. Resolves when that is done, or has taken too long. */
  async drain(graceMs: number, reason: string): Promise<void> {
    await this.emptied(graceMs)
    for (const connection of this.#connections) connection.stop('killed', reason)
    await this.emptied(LINGER_MS)
  }

  /** Resolves when there is none left, or the time is over. */
  async emptied(withinMs: number = LINGER_MS): Promise<void> {
    const until = Date.now() + withinMs
    while (this.#connections.size > 0 && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  #noticed(notice: GateNotice): void {
    const session = this.#sessions.get(notice.session)
    if (!session) {
      this.#early.keep(notice)
      return
    }
    switch (notice.type) {
      case 'stop':
        session.stop('killed', notice.reason)
        return
      case 'tell':
        session.onTell?.(notice.text)
        return
      case 'watch':
        session.recording.watch(notice.sync)
    }
  }

  #register(id: string, session: SshSession | undefined): void {
    const early = this.#early.take(id)
    if (!session) {
      this.#sessions.delete(id)
      return
    }
    this.#sessions.set(id, session)
    for (const notice of early) this.#noticed(notice)
  }
}
