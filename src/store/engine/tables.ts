/** Tables of a SQLite file, as its own schema names them: a copy of all rows goes by them. */
import type { DatabaseSync } from 'node:sqlite'

export interface Table {
  name: string
  columns: readonly string[]
  /** Columns of the primary key, in its order. */
  key: readonly string[]
}

/** Returns all tables, each behind those that its rows refer to. */
export function tablesOf(database: DatabaseSync): Table[] {
  const names = database
    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'")
    .all()
    .map(({ name }) => String(name))
    .sort()
  const references = database.prepare('select distinct "table" as name from pragma_foreign_key_list(?)')
  const seen = new Set<string>()
  const ordered: string[] = []
  const visit = (name: string) => {
    if (seen.has(name)) return
    seen.add(name)
    for (const { name: other } of references.all(name)) visit(String(other))
    ordered.push(name)
  }
  for (const name of names) visit(name)
  return ordered.map((name) => tableOf(database, name))
}

function tableOf(database: DatabaseSync, name: string): Table {
  const rows = database.prepare('select name, pk from pragma_table_info(?)').all(name)
  const columns = rows.map((row) => ({ name: String(row['name']), pk: Number(row['pk']) }))
  const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk)
  return { name, columns: columns.map((column) => column.name), key: key.map((column) => column.name) }
}

/** Returns names as a list of SQL, of either engine. */
export const listOf = (names: readonly string[]): string => names.map(quoted).join(', ')

/** Returns the text that selects all rows of a table in the order of its key. */
export function selectAll({ name, columns, key }: Table): string {
  return `select ${listOf(columns)} from ${quoted(name)} order by ${listOf(key)}`
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
