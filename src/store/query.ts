/**
 * Helpers of the repositories: pages, lists in columns, references, and the meaning of a constraint's error.
 */
import { isDeepStrictEqual } from 'node:util'
import { type OrderByModifiers, type SelectQueryBuilder, type SqlBool, sql } from 'kysely'
import { looksLikeId, nameKey } from '../model/names.ts'
import { bind } from '../search/bind.ts'
import { inTransaction, type Tx } from './engine/commits.ts'
import {
  ChangedError,
  DuplicateError,
  InUseError,
  isUniqueViolation,
  MAX_USERS_NAMED,
  MissingReferenceError,
  SortError,
} from './engine/errors.ts'
import { READ_HERE } from './engine/here.ts'
import { keptQuery } from './engine/kept-query.ts'
import { updateRow } from './engine/kept-rows.ts'
import { ListReading } from './long-search.ts'
import type { Db, Schema } from './migrations/schema.ts'
import { isNullable, type SqlField, type SqlFields, sortOf, where } from './searchable.ts'
import type { Listed, Page } from './store.ts'

export type { Tx }

const ALL: Page = { limit: -1, offset: 0 }
/** A limit that is none. */
export const EVERYTHING = Number.MAX_SAFE_INTEGER
/** Objects of one piece. */
const PIECE = 50
/** Fewer matches than these are sorted, even if they are most of a collection. */
const MANY = 1000

/**
 * Returns the objects of a page, each made from its row by `object`, and their number on all pages. Sorted by
 * `standard` by default; the id breaks ties, so that pages neither overlap nor leave gaps. `known`: the
 * number of objects without a search, if it takes no counting.
 * @throws SortError, SearchError, StoreBusyError
 */
export async function listed<DB, TB extends keyof DB, O, T>(
  query: SelectQueryBuilder<DB, TB, O>,
  object: (row: O) => T,
  fields: SqlFields,
  standard: readonly string[],
  { limit, offset, sort = [], search, inPieces = false }: Page = ALL,
  known?: number,
): Promise<Listed<T>> {
  const countAll = async () => known ?? (await countOf(query))
  const ordered = (matching: typeof query) => {
    let result = matching
    for (const key of sort.length > 0 ? sort : standard) {
      const descending = key.startsWith('-')
      const name = descending ? key.slice(1) : key
      result = result.orderBy(sortKey(name, fields), directionOf(descending, fields[name]!))
    }
    return result
      .orderBy(fields.id.value)
      .limit(limit === -1 ? EVERYTHING : limit)
      .offset(offset)
  }
  const reading = new ListReading()
  const bounded = (isHere: boolean) => (isHere ? query.where(READ_HERE) : query)
  if (search) {
    const condition = bind(search, fields)
    const matching = (most: boolean, isHere: boolean) =>
      bounded(isHere).where(where(condition, fields, { most, isHere }))
    // An unknown sort key is an error even if nothing is found.
    ordered(query)
    const total = totalOf(await reading.rows((isHere) => counting(matching(false, isHere))))
    if (total === 0) return { items: [], total }
    const most = total > MANY && total * 2 > (await countAll())
    if (inPieces) return { items: [], total, pieces: piecesOf(ordered(matching(most, false)), object) }
    return { items: (await reading.rows((isHere) => ordered(matching(most, isHere)))).map(object), total }
  }
  if (inPieces) return { items: [], total: await countAll(), pieces: piecesOf(ordered(query), object) }
  // A whole collection is asked for by the broker itself, which does not wait for other lists.
  const rows =
    limit === -1 ? await ordered(query).execute() : await reading.rows((isHere) => ordered(bounded(isHere)))
  // A page that is not full is the last one, and determines the total.
  const isLast = (limit === -1 || rows.length < limit) && (rows.length > 0 || offset === 0)
  const total = isLast ? offset + rows.length : await countAll()
  return { items: rows.map(object), total }
}

async function* piecesOf<DB, TB extends keyof DB, O, T>(
  query: SelectQueryBuilder<DB, TB, O>,
  object: (row: O) => T,
): AsyncGenerator<T[]> {
  let piece: T[] = []
  for await (const row of query.stream(PIECE)) {
    piece.push(object(row))
    if (piece.length < PIECE) continue
    yield piece
    piece = []
  }
  if (piece.length > 0) yield piece
}

function counting<DB, TB extends keyof DB, O>(query: SelectQueryBuilder<DB, TB, O>) {
  return query.clearSelect().select(sql<number>`count(*)`.as('total'))
}

const totalOf = (rows: readonly unknown[]): number => (rows[0] as { total: number }).total

async function countOf<DB, TB extends keyof DB, O>(query: SelectQueryBuilder<DB, TB, O>): Promise<number> {
  return totalOf(await counting(query).execute())
}

function sortKey(name: string, fields: SqlFields) {
  const key = Object.hasOwn(fields, name) ? sortOf(fields[name]!) : undefined
  if (key) return key
  const known = Object.entries(fields).flatMap(([one, field]) => (sortOf(field) ? [one] : []))
  throw new SortError(name, known)
}

/**
 * Returns the order of a field: rows without a value come before all others, as SQLite has it. It is said only
 * where there may be such rows: PostgreSQL's indexes have another order.
 */
function directionOf(descending: boolean, field: SqlField): OrderByModifiers {
  if (!isNullable(field)) return descending ? 'desc' : 'asc'
  return (order) => (descending ? order.desc().nullsLast() : order.asc().nullsFirst())
}

/** Returns the column for a name or an id: names never look like ids (model/names.ts). */
export function byIdOrName(idOrName: string): { column: 'id' | 'name_key'; value: string } {
  return looksLikeId(idOrName)
    ? { column: 'id', value: idOrName.toUpperCase() }
    : { column: 'name_key', value: nameKey(idOrName) }
}

/** Returns a function that reads the row with an id or name. */
export function rowFinder<DB, TB extends keyof DB, O>(
  select: (db: Db) => SelectQueryBuilder<DB, TB, O>,
): (db: Db, idOrName: string) => Promise<O | undefined> {
  const by = (column: 'id' | 'name_key') =>
    keptQuery((db: Db, value: string) => select(db).where(sql<SqlBool>`${sql.ref(column)} = ${value}`))
  const find = { id: by('id'), name_key: by('name_key') }
  return async (db, idOrName) => {
    const { column, value } = byIdOrName(idOrName)
    return (await find[column](db, value))[0]
  }
}

/** Runs one transaction; the violation of a unique key becomes `DuplicateError`. */
export async function write<T>(
  db: Db,
  object: { type: string; name: string },
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await inTransaction(db, work)
  } catch (error) {
    if (isUniqueViolation(error)) throw new DuplicateError(object.type, object.name)
    throw error
  }
}

export type Referred =
  | 'users'
  | 'user_groups'
  | 'timeframes'
  | 'devices'
  | 'services'
  | 'domains'
  | 'accounts'
  | 'target_groups'
  | 'authorizations'
  | 'api_keys'
  | 'profiles'
  | 'checkout_policies'
  | 'connection_policies'
  | 'password_change_policies'
  | 'external_auths'
  | 'notifications'
  | 'auth_domains'
  | 'auth_domain_mappings'
  | 'host_keys'
  | 'checkouts'
  | 'sessions'

const idsIn = new Map<Referred, (db: Db, id: string) => Promise<unknown[]>>()

/** Returns the query for an id in the table. */
function idIn(table: Referred): (db: Db, id: string) => Promise<unknown[]> {
  const known = idsIn.get(table)
  if (known) return known
  const made = keptQuery((db: Db, id: string) => db.selectFrom(table).select('id').where('id', '=', id))
  idsIn.set(table, made)
  return made
}

/** @throws MissingReferenceError if one of the ids is not in the table */
export async function requireIds(
  tx: Tx,
  table: Referred,
  ids: readonly string[],
  objectType: string,
  field: string,
): Promise<void> {
  for (const id of new Set(ids)) {
    if ((await idIn(table)(tx, id)).length === 0) throw new MissingReferenceError(objectType, field, id)
  }
}

/**
 * Returns the current object, to be changed in this transaction.
 * @throws MissingReferenceError if it no longer exists, ChangedError if it differs from `expected`
 */
export function unchanged<T extends object>(found: T | undefined, type: string, id: string, expected?: T): T {
  if (!found) throw new MissingReferenceError(type, 'id', id)
  if (expected !== undefined && !isDeepStrictEqual(found, expected)) throw new ChangedError(type)
  return found
}

/** @throws InUseError if `users`, a query for objects that refer to this one, finds any */
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

/** Writes the columns of a change that are not undefined. Returns whether the row is there. */
export async function setColumns<T extends Referred>(
  db: Db,
  table: T,
  id: string,
  columns: { readonly [K in keyof Schema[T]]?: Schema[T][K] | undefined },
): Promise<boolean> {
  const set = Object.entries(columns).filter(([, value]) => value !== undefined)
  if (set.length === 0) return (await idIn(table)(db, id)).length > 0
  return await updateRow(db, table, id, Object.fromEntries(set))
}

/**
 * Returns the column of an optional field: undefined if the change does not name it, null if the change
 * clears it.
 */
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
