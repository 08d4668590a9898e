/** Compares two stores row by row, and the audit log of one with its chain. */
import type { AuditRepository, AuditRow } from '../store.ts'
import { rowsAfter, type Side } from './side.ts'
import type { Table } from './tables.ts'
import { Digest, keyOf, type Row, textOf, type Value } from './values.ts'

/** Rows of each side at a time. */
const ROWS = 1000
/** Characters of a key that are shown. */
const SHOWN = 80
const MAX_HANDOVERS = 1000

export interface TableDigest {
  name: string
  rows: number
  /** The sum of the SHA-256 of all rows, in hex. */
  digest: string
}

export interface Compared {
  tables: TableDigest[]
  /** The first difference, in words. Absent if there is none. */
  fault?: string
}

export interface CompareOptions {
  /** Returns a row of the source as the destination has to have it. */
  stored: (row: Row, table: Table) => Row
  onRows?: (table: string, rows: number) => void | Promise<void>
}

/** Compares all tables; all are counted and digested, whatever differs. */
export async function compareStores(
  source: Side,
  destination: Side,
  tables: readonly Table[],
  { stored, onRows }: CompareOptions,
): Promise<Compared> {
  const compared: Compared = { tables: [] }
  for (const table of tables) {
    const [own, other] = [new Digest(), new Digest()]
    let first: string | undefined
    const rowsOf = [pagesOf(source, table, stored), pagesOf(destination, table, (row) => row)] as const
    for (;;) {
      const [left, right] = await Promise.all(rowsOf.map((next) => next()))
      const most = Math.max(left!.length, right!.length)
      for (let at = 0; at < most; at++) {
        const [a, b] = [left![at], right![at]]
        const [textA, textB] = [a && textOf(a), b && textOf(b)]
        if (textA !== undefined) own.add(textA)
        if (textB !== undefined) other.add(textB)
        if (textA !== textB) first ??= keyText(table, (a ?? b)!)
      }
      await onRows?.(table.name, own.rows)
      if (most === 0) break
    }
    compared.tables.push({ name: table.name, rows: own.rows, digest: own.hex })
    const numbers = own.rows === other.rows ? '' : ` of ${own.rows} rows it has ${other.rows},`
    if (own.hex !== other.hex || own.rows !== other.rows)
      compared.fault ??= `table ${table.name}:${numbers} the first difference is at ${first}`
    if (table.isCounted && (await source.counter(table)) !== (await destination.counter(table)))
      compared.fault ??= `table ${table.name}: its counter differs`
  }
  return compared
}

/** Returns a function that returns the next rows of a table, or none at its end. */
function pagesOf(side: Side, table: Table, stored: CompareOptions['stored']): () => Promise<Row[]> {
  let after: Value[] | undefined
  let isEnd = false
  return async () => {
    if (isEnd) return []
    const rows = await rowsAfter(side, table, after, ROWS)
    const last = rows.at(-1)
    if (last) after = keyOf(table, last)
    isEnd = rows.length < ROWS
    return rows.map((row) => stored(row, table))
  }
}

/** Returns the key for people. Keys are names and ids, or hashes. */
export function keyText(table: Table, row: Row): string {
  const key = keyOf(table, row).map((value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value),
  )
  const text = key.join(', ')
  return SHOWN < text.length ? `${text.slice(0, SHOWN)}…` : text
}

const COLUMNS = 'select sequence, time, code, session, json, hash from audit'

/** Returns what a verification of the audit log reads. */
export function auditOf(side: Side): Pick<AuditRepository, 'range' | 'handovers'> & {
  last(): Promise<AuditRow | undefined>
} {
  return {
    async range(from, limit) {
      const text = `${COLUMNS} where sequence >= ? order by sequence limit ?`
      return (await side.run(text, [BigInt(from), BigInt(limit)])).map(auditRow)
    },
    async handovers() {
      const text = `${COLUMNS} where code = 'audit.handover' order by sequence desc limit ${MAX_HANDOVERS}`
      return (await side.run(text)).map(auditRow)
    },
    async last() {
      return (await side.run(`${COLUMNS} order by sequence desc limit 1`)).map(auditRow)[0]
    },
  }
}

function auditRow([sequence, time, code, session, json, hash]: Row): AuditRow {
  return {
    sequence: Number(sequence),
    time: Number(time),
    code: String(code),
    session: session === null ? null : String(session),
    json: String(json),
    hash: hash instanceof Uint8Array ? hash : new Uint8Array(),
  }
}
