import { UniqueViolationError } from '../../src/store/engine/errors.ts'
import type { AuditRepository, AuditRow } from '../../src/store/store.ts'

/** An audit repository in memory that can be slow, and can be made to fail. */
export class MemoryAudit implements AuditRepository {
  rows: AuditRow[] = []
  /** Sizes of the groups that were appended. */
  groups: number[] = []
  /** The error of the next append. */
  failure: Error | undefined
  /** The next append succeeds, but throws. */
  lostAnswer = false

  async last(): Promise<AuditRow | undefined> {
    return this.rows.at(-1)
  }

  async append(rows: AuditRow[]): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 5))
    if (this.failure) {
      const failure = this.failure
      this.failure = undefined
      throw failure
    }
    if (rows.some(({ sequence }) => this.rows.some((row) => row.sequence === sequence))) {
      throw new UniqueViolationError()
    }
    this.rows.push(...rows)
    this.groups.push(rows.length)
    if (this.lostAnswer) {
      this.lostAnswer = false
      throw new Error('connection lost')
    }
  }

  async range(fromSequence: number, limit: number): Promise<AuditRow[]> {
    return this.rows.filter(({ sequence }) => sequence >= fromSequence).slice(0, limit)
  }

  async progress(since: number, fromSequence: number, limit: number): Promise<AuditRow[]> {
    return (await this.range(fromSequence, Infinity))
      .filter(({ code, time }) => code === 'recording.progress' && time >= since)
      .slice(0, limit)
  }

  async ofSession(session: string, limit: number): Promise<AuditRow[]> {
    return this.rows.filter(({ json }) => JSON.parse(json).fields.session === session).slice(0, limit)
  }

  async handovers(): Promise<AuditRow[]> {
    return this.rows.filter(({ code }) => code === 'audit.handover').toReversed()
  }

  async removeUpTo(sequence: number, limit: number): Promise<number> {
    const removed = this.rows.filter((row) => row.sequence <= sequence).slice(0, limit)
    this.rows = this.rows.filter((row) => !removed.includes(row))
    return removed.length
  }
}
