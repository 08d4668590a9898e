/**
 * Exports the audit log as lines for another machine: the event's JSON exactly as it was hashed, with the
 * row's hash added as its last member. Without that member the line has the hashed bytes.
 */
import { Buffer } from 'node:buffer'
import type { AuditRepository, AuditRow } from '../store/store.ts'

const ROWS_AT_A_TIME = 1000

export function exportLine({ json, hash }: Pick<AuditRow, 'json' | 'hash'>): string {
  return `${json.slice(0, -1)},"hash":"${Buffer.from(hash).toString('hex')}"}\n`
}

/**
 * Yields the whole log up to its current last row, in pieces of some lines.
 * @throws Error if rows that are not exported yet were removed meanwhile
 */
export async function* exportAudit(
  repository: Pick<AuditRepository, 'range' | 'last'>,
): AsyncGenerator<string> {
  const end = (await repository.last())?.sequence ?? 0
  for (let next = 0; next <= end; ) {
    const rows = (await repository.range(next, ROWS_AT_A_TIME)).filter(({ sequence }) => sequence <= end)
    const [first, last] = [rows[0], rows.at(-1)]
    if (!first || !last) return
    if (next > 0 && first.sequence !== next)
      throw new Error(
        `the audit log begins with row ${first.sequence} by now: rows from ${next} on were handed over meanwhile; export it again`,
      )
    yield rows.map(exportLine).join('')
    next = last.sequence + 1
  }
}
