/** All signed-in connections, of every front, and the gate's notices to their sessions. */
import type { Gate, GateNotice } from '../../src/contract/gate.ts'
import { LINGER_MS } from '../net/limits.ts'
import { EarlyNotices } from './early-notices.ts'
import type { ProxySession, SessionResult } from './session.ts'

/** A user's connection, from the sign-in to its end. */
export interface ProxyConnection {
  /**
   * Ends everything on this connection and shows the reason to the user: the broker is stopping, or the
   * sign-in was revoked.
   */
  stop(result: SessionResult, reason: string): void
}

export class Connections {
  /** Each connection, with the token of its sign-in. */
  readonly #connections = new Map<ProxyConnection, string>()
  readonly #sessions = new Map<string, ProxySession>()
  readonly #early = new EarlyNotices()

  constructor(gate: Pick<Gate, 'onNotice'>) {
    gate.onNotice((notice) => this.#noticed(notice))
  }

  /** Adds a connection that has signed in under this token. */
  add(connection: ProxyConnection, identity: string): void {
    this.#connections.set(connection, identity)
  }

  /** Removes a connection that has ended. */
  remove(connection: ProxyConnection): void {
    this.#connections.delete(connection)
  }

  get count(): number {
    return this.#connections.size
  }

  /** Delivers the gate's notices to the session from now on, and those that came earlier at once. */
  begun(session: ProxySession): void {
    this.#sessions.set(session.id, session)
    for (const notice of this.#early.take(session.id)) this.#noticed(notice)
  }

  /** Forgets a session that has ended, or never began. */
  onClosed({ id }: Pick<ProxySession, 'id'>): void {
    this.#early.take(id)
    this.#sessions.delete(id)
  }

  /**
   * Gives connections `graceMs`, then ends them with the reason. Resolves when they have ended, or after a
   * limit.
   */
  async drain(graceMs: number, reason: string): Promise<void> {
    await this.emptied(graceMs)
    for (const connection of this.#connections.keys()) connection.stop('killed', reason)
    await this.emptied(LINGER_MS)
  }

  /** Resolves when no connection is left, or the time is up. */
  async emptied(withinMs: number = LINGER_MS): Promise<void> {
    const until = Date.now() + withinMs
    while (this.#connections.size > 0 && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  #signedOut({ identity, reason }: GateNotice & { type: 'leave' }): void {
    for (const [connection, token] of this.#connections) {
      if (token === identity) connection.stop('killed', reason)
    }
  }

  #noticed(notice: GateNotice): void {
    if (notice.type === 'leave') {
      this.#signedOut(notice)
      return
    }
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
      case 'guest':
        session.onGuest?.(notice.invitation, notice.change)
        return
      case 'watch':
        session.recording.watch(notice.sync)
    }
  }
}
