/**
 * Notices for sessions that the gate has opened and the proxy is still preparing: the last of each kind, in the
 * order of their arrival.
 */
import type { GateNotice } from '../../src/contract/gate.ts'
import { MAX_EARLY_NOTICES } from './limits.ts'

export type SessionNotice = Exclude<GateNotice, { identity: string }>

export class EarlyNotices {
  readonly #kept = new Map<string, Map<SessionNotice['type'], SessionNotice>>()

  /** If there are too many, drops the oldest: its session had probably ended before the notice arrived. */
  keep(notice: SessionNotice): void {
    const own = this.#kept.get(notice.session) ?? new Map<SessionNotice['type'], SessionNotice>()
    // The later of the two counts.
    if (notice.type === 'suspend') own.delete('resume')
    if (notice.type === 'resume') own.delete('suspend')
    this.#kept.set(notice.session, own.set(notice.type, notice))
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > MAX_EARLY_NOTICES && oldest !== undefined) this.#kept.delete(oldest)
  }

  /** Returns the notices for a session that has begun or ended. */
  take(session: string): SessionNotice[] {
    const own = this.#kept.get(session)
    this.#kept.delete(session)
    return [...(own?.values() ?? [])]
  }
}
