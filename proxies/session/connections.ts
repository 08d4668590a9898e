/** All signed-in connections, of every front, and the gate's notices to their sessions. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Gate, GateNotice } from '../../src/contract/gate.ts'
import { LINGER_MS } from '../net/limits.ts'
import { ApprovalWaits } from './approval-waits.ts'
import { EarlyNotices } from './early-notices.ts'
import { ends } from './ends.ts'
import type { ProxySession, SessionResult } from './session.ts'

/** A user's connection, from the sign-in to its end. */
export interface ProxyConnection {
  /**
   * Ends everything on this connection and shows the reason to the user: the broker is stopping, or the
   * sign-in was revoked.
   */
  stop(result: SessionResult, reason: string): void
  /** Shows the list of targets anew, if one is shown, below this line. */
  onTargets?(text: string): void
}

const LOOK_MS = 50

export class Connections {
  /** Each connection, with the token of its sign-in. */
  readonly #connections = new Map<ProxyConnection, string>()
  readonly #sessions = new Map<string, ProxySession>()
  readonly #early = new EarlyNotices()
  /** The clients that wait for an approval. */
  readonly approvals: ApprovalWaits
  /** When the grace of a drain ends, on the monotonic clock. */
  #graceEnd = Number.POSITIVE_INFINITY

  constructor(gate: Pick<Gate, 'onNotice' | 'withdraw'>) {
    this.approvals = new ApprovalWaits(gate)
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
   * Gives connections `graceMs`, which users read, then ends them with the reason. A second call can shorten
   * the grace of the first. Resolves when they have ended, or after a limit.
   */
  async drain(graceMs: number, reason: string): Promise<void> {
    const end = performance.now() + graceMs
    if (end < this.#graceEnd) {
      this.#graceEnd = end
      if (graceMs > 0) this.#tellAll(`${reason}: this session ends in ${spanOf(graceMs)} at the latest`)
    }
    while (this.#connections.size > 0 && performance.now() < this.#graceEnd) await sleep(LOOK_MS)
    for (const connection of this.#connections.keys()) ends.run(() => connection.stop('killed', reason))
    await this.emptied()
  }

  /** Resolves when no connection is left, or the time is up. */
  async emptied(withinMs: number = LINGER_MS): Promise<void> {
    const until = performance.now() + withinMs
    while (this.#connections.size > 0 && performance.now() < until) await sleep(LOOK_MS)
  }

  #tellAll(text: string): void {
    for (const session of this.#sessions.values()) session.onTell?.(text)
  }

  #signedOut({ identity, reason }: GateNotice & { type: 'leave' }): void {
    for (const [connection, token] of this.#connections) {
      if (token === identity) connection.stop('killed', reason)
    }
  }

  #targetsChanged({ identity, text }: GateNotice & { type: 'targets' }): void {
    for (const [connection, token] of this.#connections) {
      if (token === identity) connection.onTargets?.(text)
    }
  }

  #noticed(notice: GateNotice): void {
    if ('identity' in notice) {
      if (notice.type === 'leave') this.#signedOut(notice)
      else if (notice.type === 'targets') this.#targetsChanged(notice)
      else this.approvals.noticed(notice)
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
      case 'count':
        session.reportCount()
        return
      case 'suspend':
        session.suspension.begin(notice.reason)
        return
      case 'resume':
        session.suspension.end()
        return
      case 'guest':
        session.onGuest?.(notice.invitation, notice.change)
        return
      case 'watch':
        session.recording.watch(notice.sync)
    }
  }
}

/** Returns a time span in words, rounded up: `30 s`, `10 min`, `24 h`. */
export function spanOf(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`
}
