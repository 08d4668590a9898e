/**
 * Searches of the audit log. It may have gigabytes, and most of its fields have no index, so a search reads it by
 * stretches, each by a statement of its own where long lists are read (long-search.ts): no statement is long, and others
 * have their turn in between. The rows between two moments, and those of one code or session, are found by an index.
 */
import { sql } from 'kysely'
import type { Condition } from '../search/bind.ts'
import { auditRow } from './audit.ts'
import { AUDIT_FIELDS } from './audit-fields.ts'
import type { StoreContext } from './migrations/schema.ts'
import { where } from './searchable.ts'
import type { AuditPlace, AuditRow, AuditSearch, AuditSearchRepository } from './store.ts'

/** Rows of a stretch: of those that are read one by one, and of those among which an index finds some. */
const STRETCH = 5000
const INDEXED_STRETCH = 100_000
/** Rows that are found in one stretch; more of them end it early. */
const MAX_FOUND = 1000

export function auditSearchRepository({ db }: StoreContext): AuditSearchRepository {
  async function ends(condition: Condition | undefined): Promise<Range | undefined> {
    const times = termsOf(condition).flatMap((term) =>
      term.field === 'time' && term.test.type === 'within' ? [term.test] : [],
    )
    if (times.length === 0)
      return endsOf(await db.selectNoFrom([FIRST.as('first'), LAST.as('last')]).execute())
    let rows = db.selectFrom('audit').select([MIN.as('first'), MAX.as('last')])
    for (const { from, to } of times) {
      if (from !== undefined) rows = rows.where('time', '>=', from)
      if (to !== undefined) rows = rows.where('time', '<', to)
    }
    // Clocks jump: so each time of the span is looked at, in an index.
    const found: Ends[] = []
    for await (const row of rows.stream(1)) found.push(row)
    return endsOf(found)
  }

  async function found(search: AuditSearch, from: number, to: number): Promise<AuditRow[]> {
    const { condition, newestFirst } = search
    let query = db.selectFrom('audit').selectAll().where('sequence', '>=', from).where('sequence', '<=', to)
    if (codeOf(condition) !== undefined) query = query.where(IN_INDEX)
    if (condition) query = query.where(where(condition, AUDIT_FIELDS, { most: true, isHere: false }))
    const ordered = query.orderBy('sequence', newestFirst ? 'desc' : 'asc').limit(MAX_FOUND)
    const rows: AuditRow[] = []
    for await (const row of ordered.stream(MAX_FOUND)) rows.push(auditRow(row))
    return rows
  }

  return {
    ends,

    async *search(search) {
      const { newestFirst, after } = search
      const given = after?.first !== undefined && after.last !== undefined
      const within = given ? { first: after.first!, last: after.last! } : await ends(search.condition)
      if (!within) return
      // The place comes from a client.
      const whole = given ? await ends(undefined) : within
      if (!whole) return
      const first = Math.max(within.first, whole.first)
      const last = Math.min(within.last, whole.last)
      const size = isIndexed(search.condition) ? INDEXED_STRETCH : STRETCH
      const begin = newestFirst ? last : first
      const next = after === undefined ? begin : after.row + (newestFirst ? -1 : 1)
      let at = newestFirst ? Math.min(next, last) : Math.max(next, first)
      while (first <= at && at <= last) {
        const end = newestFirst ? Math.max(first, at - size + 1) : Math.min(last, at + size - 1)
        const rows = await found(search, Math.min(at, end), Math.max(at, end))
        const row = rows.length === MAX_FOUND ? rows.at(-1)!.sequence : end
        const isLast = row === (newestFirst ? first : last)
        yield { rows, place: { row, first, last }, isLast }
        at = newestFirst ? row - 1 : row + 1
      }
    },

    async checkpoints(sequence) {
      const rows = db.selectFrom('audit').where('code', '=', 'audit.checkpoint').where(IN_INDEX)
      const [before] = await rows.select(MAX.as('row')).where('sequence', '<=', sequence).execute()
      const [from] = await rows.select(MIN.as('row')).where('sequence', '>=', sequence).execute()
      return {
        ...(before && before.row !== null && { before: before.row }),
        ...(from && from.row !== null && { from: from.row }),
      }
    },
  }
}

/** The same as in the index `audit_code`, letter for letter. */
const IN_INDEX = sql<boolean>`code <> 'recording.progress'`

const MIN = sql<number | null>`min(sequence)`
const MAX = sql<number | null>`max(sequence)`
// SQLite takes one of them from the end of an index, and reads all rows for both.
const FIRST = sql<number | null>`(select min(sequence) from audit)`
const LAST = sql<number | null>`(select max(sequence) from audit)`

type Range = Omit<AuditPlace, 'row'>

interface Ends {
  first: number | null
  last: number | null
}

function endsOf([ends]: readonly Ends[]): Range | undefined {
  if (!ends || ends.first === null || ends.last === null) return undefined
  return { first: ends.first, last: ends.last }
}

type Term = Extract<Condition, { type: 'test' }>

/** Returns the tests that must all be met. */
function termsOf(condition: Condition | undefined): Term[] {
  if (!condition || condition.type === 'or') return []
  return condition.type === 'test' ? [condition] : condition.terms.flatMap(termsOf)
}

/** Returns the code that all rows must have, if the index has it. */
function codeOf(condition: Condition | undefined): string | undefined {
  for (const { field, test } of termsOf(condition)) {
    if (field === 'event' && test.type === 'equals' && test.value !== 'recording.progress')
      return String(test.value)
  }
  return undefined
}

/** Whether an index finds the rows. */
function isIndexed(condition: Condition | undefined): boolean {
  if (codeOf(condition) !== undefined) return true
  return termsOf(condition).some(({ field, test }) => field === 'session' && test.type === 'equals')
}
