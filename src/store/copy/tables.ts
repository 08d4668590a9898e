/**
 * The tables of a store, from the schema itself: this program's migrations, applied to a database in memory. So no
 * table can be forgotten, whichever engine the two stores have.
 */
import { DatabaseSync } from 'node:sqlite'
import { STATE } from '../engine/state.ts'
import { migrate } from '../migrate.ts'

export type ColumnType = 'integer' | 'text' | 'blob'

export interface Table {
  name: string
  columns: readonly { name: string; type: ColumnType }[]
  /** Columns of the primary key, in its order. */
  key: readonly string[]
  /** Condition of the rows that are copied. Absent for all. */
  only?: string
  /** Whether the engine counts its keys up, and gives none twice. */
  isCounted: boolean
}

/** Written by the program that makes the schema. */
export const VERSIONS = 'schema_migrations'

/** Written by triggers of the others, so it is copied after them, in the place of what they noted. */
export const LOG = 'changes'

const NOT_THE_STATE = `"name" <> '${STATE}'`

/** Returns all tables but that of versions, each after those that it refers to. */
export function tablesOfProgram(): Table[] {
  const database = new DatabaseSync(':memory:')
  try {
    migrate(database, 0)
    const found = database
      .prepare(
        "select name, sql from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name",
      )
      .all()
    const tables = found
      .filter(({ name }) => name !== VERSIONS)
      .map(({ name, sql }) => tableOf(database, String(name), String(sql)))
    return inOrder(database, tables)
  } finally {
    database.close()
  }
}

function tableOf(database: DatabaseSync, name: string, text: string): Table {
  const columns = database.prepare('select name, lower(type) as type, pk from pragma_table_info(?)').all(name)
  return {
    name,
    columns: columns.map((column) => ({ name: String(column['name']), type: typeOf(column['type']) })),
    key: columns
      .filter(({ pk }) => Number(pk) > 0)
      .sort((a, b) => Number(a['pk']) - Number(b['pk']))
      .map((column) => String(column['name'])),
    ...(name === 'settings' && { only: NOT_THE_STATE }),
    isCounted: / autoincrement\b/i.test(text),
  }
}

function typeOf(type: unknown): ColumnType {
  if (type === 'integer' || type === 'text' || type === 'blob') return type
  throw new Error(`no column of a store has the type ${type}`)
}

function inOrder(database: DatabaseSync, tables: readonly Table[]): Table[] {
  const parents = database.prepare('select "table" as parent from pragma_foreign_key_list(?)')
  const ordered: Table[] = []
  const add = (table: Table) => {
    if (ordered.includes(table)) return
    for (const { parent } of parents.all(table.name)) {
      const other = tables.find(({ name }) => name === parent)
      if (other && other !== table) add(other)
    }
    ordered.push(table)
  }
  for (const table of tables) if (table.name !== LOG) add(table)
  return [...ordered, ...tables.filter(({ name }) => name === LOG)]
}
