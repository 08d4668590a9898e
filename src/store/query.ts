/** What the repositories share: pages, lists in columns, references, and what a constraint's error means. */
import { type ReferenceExpression, type SelectQueryBuilder, sql, type Transaction } from 'kysely'
import { looksLikeId, nameKey } from '../model/names.ts'
import {
  DuplicateError,
  InUseError,
  isUniqueViolation,
  MAX_USERS_NAMED,
  MissingReferenceError,
  SortError,
} from './errors.ts'
import type { Db, Schema } from './schema.ts'
import type { Page } from './store.ts'

export type Tx = Transaction<Schema>

/** The API's spelling of a sort key → the column. The first is the order when none is asked for. */
export type SortKeys = Readonly<Record<string, string>>

const ALL: Page = { limit: -1, offset: 0 }

/** The query in the page's order, cut to it; `id` breaks ties, so that pages neither overlap nor leave gaps. */
export function paged<DB, TB extends keyof DB, O>(
  query: SelectQueryBuilder<DB, TB, O>,
  page: Page = ALL,
  keys: SortKeys,
  id: ReferenceExpression<DB, TB>,
  standard: string[] = Object.keys(keys).slice(0, 1),
): SelectQueryBuilder<DB, TB, O> {
  let ordered = query
  for (const key of page.sort !== undefined && page.sort.length > 0 ? page.sort : standard) {
    const descending = key.startsWith('-')
    const word = descending ? key.slice(1) : key
    const column = Object.hasOwn(keys, word) ? keys[word] : undefined
    if (column === undefined) throw new SortError(word, Object.keys(keys))
    ordered = ordered.orderBy(sql.ref(column), descending ? 'desc' : 'asc')
  }
  return ordered.orderBy(id, 'asc').limit(page.limit).offset(page.offset)
}

/** How many rows a table has. */
export async function countOf(db: Db, table: keyof Schema): Promise<number> {
  const row = await db.selectFrom(table).select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow()
  return row.total
}

/** Where a name or an id leads: names never look like ids (model/names.ts). */
export function byIdOrName(idOrName: string): { column: 'id' | 'name_key'; value: string } {
  return looksLikeId(idOrName)
    ? { column: 'id', value: idOrName.toUpperCase() }
    : { column: 'name_key', value: nameKey(idOrName) }
}

/** One transaction; the violation of a unique key becomes `DuplicateError`. */
export async function write<T>(
  db: Db,
  object: { type: string; name: string },
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await db.transaction().execute(work)
  } catch (error) {
    if (isUniqueViolation(error)) throw new DuplicateError(object.type, object.name)
    throw error
  }
}

type Referred =
  | 'users'
  | 'user_groups'
  | 'devices'
  | 'services'
  | 'domains'
  | 'accounts'
  | 'target_groups'
  | 'authorizations'
  | 'api_keys'
  | 'host_keys'
  | 'checkouts'
  | 'sessions'

/** @throws MissingReferenceError when one of the ids is not in the table */
export async function requireIds(
  tx: Tx,
  table: Referred,
  ids: readonly string[],
  objectType: string,
  field: string,
): Promise<void> {
  for (const id of new Set(ids)) {
    const row = await tx.selectFrom(table).select('id').where('id', '=', id).executeTakeFirst()
    if (!row) throw new MissingReferenceError(objectType, field, id)
  }
}

/** @throws InUseError when `users`, a query for what refers to the object, finds something */
export async function refuseInUse(
  objectType: string,
  objectName: string,
  users: readonly { type: string; query: { limit(n: number): { execute(): Promise<{ name: string }[]> } } }[],
): Promise<void> {
  const named: string[] = []
  for (const { type, query } of users) {
    const rows = await query.limit(MAX_USERS_NAMED - named.length).execute()
    named.push(...rows.map((row) => `${type} "${row.name}"`))
    if (named.length >= MAX_USERS_NAMED) break
  }
  if (named.length > 0) throw new InUseError(objectType, objectName, named)
}

/** The columns that a change names: those that are not undefined. */
export function named<T extends object>(columns: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

/** The column of an optional field: untouched when the change does not name it, null when it clears it. */
export function cleared<T extends object, K extends keyof T>(
  change: T,
  field: K,
): Exclude<T[K], undefined> | null | undefined {
  return field in change ? ((change[field] as Exclude<T[K], undefined> | undefined) ?? null) : undefined
}

export const flag = (value: boolean | undefined): number | undefined =>
  value === undefined ? undefined : Number(value)

export const list = <T>(json: string): T[] => JSON.parse(json) as T[]

export const json = (value: unknown): string | undefined =>
  value === undefined ? undefined : JSON.stringify(value)

export const key = (name: string | undefined): string | undefined =>
  name === undefined ? undefined : nameKey(name)
