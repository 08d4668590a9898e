/** The ends of the approvals that sessions were opened by: a warning before, and the end of the session. */
import type { RunningSession } from './running.ts'

/** Milliseconds before the end at which the user is warned. */
export const WARNING_MS = 300_000

export class ApprovalEnds {
  /** Not later than the first time at which something has to be done. */
  #first = Number.POSITIVE_INFINITY

  /** Notes the end of a session that begins. */
  add({ approval }: Pick<RunningSession, 'approval'>): void {
    if (approval) this.#first = Math.min(this.#first, approval.end - WARNING_MS)
  }

  /** Returns the sessions whose time has come at `now`, and those to be warned, each once with its text. */
  due(
    now: number,
    running: Iterable<RunningSession>,
  ): { over: RunningSession[]; warned: [RunningSession, string][] } {
    const over: RunningSession[] = []
    const warned: [RunningSession, string][] = []
    if (now < this.#first) return { over, warned }
    this.#first = Number.POSITIVE_INFINITY
    for (const session of running) {
      const { approval } = session
      if (!approval || session.stopped !== undefined) continue
      if (approval.end <= now) over.push(session)
      else if (approval.end - WARNING_MS <= now && !approval.isWarned) {
        approval.isWarned = true
        const minutes = Math.ceil((approval.end - now) / 60_000)
        warned.push([session, `this session ends in ${minutes} min: the time of its approval is over then`])
      }
      const next = approval.isWarned || approval.end <= now ? approval.end : approval.end - WARNING_MS
      this.#first = Math.min(this.#first, next)
    }
    return { over, warned }
  }
}
