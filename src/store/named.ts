/** Repository of objects whose name is unique in their collection. */
import type { SelectQueryBuilder } from 'kysely'
import type { Id } from '../model/objects.ts'
import type { Db, StoreContext } from './migrations/schema.ts'
import { listed, type Referred, rowFinder, type Tx, unchanged, write } from './query.ts'
import type { SqlFields } from './searchable.ts'
import type { Repository } from './store.ts'

/** One collection of named objects. */
export interface NamedCollection<T extends { id: Id }, DB, TB extends keyof DB, O> {
  /** Shown in errors. */
  type: string
  table: Referred
  fields: SqlFields
  /** Field that a list is sorted by if the caller does not choose. */
  standard: string
  select: (db: Db) => SelectQueryBuilder<DB, TB, O>
  object: (row: O) => T
  nameOf: (object: Partial<Omit<T, 'id'>>) => string | undefined
  insert: (tx: Tx, id: Id, object: Omit<T, 'id'>) => Promise<void>
  change: (tx: Tx, id: Id, change: Partial<Omit<T, 'id'>>, old: T) => Promise<void>
  /** Throws if the object may not be removed. */
  requireUnused: (tx: Tx, object: T) => Promise<void>
}

export function namedRepository<T extends { id: Id }, DB, TB extends keyof DB, O>(
  { db, newId }: StoreContext,
  collection: NamedCollection<T, DB, TB, O>,
): Repository<T> {
  const { type, select, object: objectOf, nameOf } = collection
  const rowOf = rowFinder(select)
  const find = async (from: Db, idOrName: string): Promise<T | undefined> => {
    const row = await rowOf(from, idOrName)
    return row && objectOf(row)
  }
  return {
    list: (page) => listed(select(db), objectOf, collection.fields, [collection.standard], page),

    find: (idOrName) => find(db, idOrName),

    create: (object) => {
      const id = newId()
      return write(db, { type, name: nameOf(object) ?? id }, async (tx) => {
        await collection.insert(tx, id, object)
        return (await find(tx, id))!
      })
    },

    update: (id, change, expected) =>
      write(db, { type, name: nameOf(change) ?? id }, async (tx) => {
        const old = unchanged(await find(tx, id), type, id, expected)
        await collection.change(tx, id, change, old)
        return (await find(tx, id))!
      }),

    remove: (id, expected) =>
      write(db, { type, name: id }, async (tx) => {
        await collection.requireUnused(tx, unchanged(await find(tx, id), type, id, expected))
        await tx.deleteFrom(collection.table).where('id', '=', id).execute()
      }),
  }
}
