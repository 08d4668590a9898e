/** Notices for sessions that the gate has opened and that are still being begun here: the last of each kind. */
import type { GateNotice } from '../../src/contract/gate.ts'
import { MAX_EARLY_NOTICES } from './limits.ts'

export type SessionNotice = Exclude<GateNotice, { type: 'leave' }>

export class EarlyNotices {
  readonly #kept = new Map<string, Map<SessionNotice['type'], SessionNotice>>()

  /** The oldest of too many is of a session that was over when it came. */
  keep(notice: SessionNotice): void {
    const own = this.#kept.get(notice.session) ?? new Map<SessionNotice['type'], SessionNotice>()
    this.#kept.set(notice.session, own.set(notice.type, notice))
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > MAX_EARLY_NOTICES && oldest !== undefined) this.#kept.delete(oldest)
  }

  /** What has come for the session, which has begun or ended now. */
  take(session: string): SessionNotice[] {
    const own = this.#kept.get(session)
    this.#kept.delete(session)
    return [...(own?.values() ?? [])]
  }
}
