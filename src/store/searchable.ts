/**
 * The SQL of a collection's fields, and conditions on them as a WHERE clause. The SQL comes from the
 * repositories' tables of fields; users' input becomes bound parameters only.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Condition, Test } from '../search/bind.ts'
import type { Field, Kind } from '../search/fields.ts'
import type { Sql } from './engine/either.ts'
import { READ_HERE } from './engine/here.ts'
import { isAmong, jsonMembers } from './engine/json.ts'
import { isLike } from './engine/like.ts'

/** A column with one value for each row. */
interface Column extends Field {
  value: Sql
  /** Set if a row may have no value. */
  isNullable?: true
}

/** A list of words in one column, as JSON. */
interface List extends Field {
  list: Sql
}

/** Values of a row in other tables. */
interface Relation extends Field {
  value: Sql
  /** FROM clause of the other tables. */
  from: Sql
  /** Column that is compared with `value`. */
  equals: Sql
  /** Column that is searched. */
  member: Sql
  /** Sort order of the collection, if a row has one such value. */
  sort?: Sql
  /** A faster condition for the absence of members. */
  none?: RawBuilder<SqlBool>
}

export type SqlField = Column | List | Relation
/** By the API's spelling; `id` breaks ties of the order. */
export type SqlFields = Readonly<Record<string, SqlField>> & { readonly id: Column }

export function column(kind: Kind, name: string): Column {
  return { kind, value: sql.ref(name) }
}

/** A column that is null in some rows. */
export function nullable(kind: Kind, name: string): Column {
  return { ...column(kind, name), isNullable: true }
}

/** `name` with its table: the members of the list have a column of their own. */
export function listColumn(kind: Kind, name: `${string}.${string}`): List {
  return { kind, list: sql.ref(name) }
}

export function related(kind: Kind, relation: Omit<Relation, 'kind'>): Relation {
  return { kind, ...relation }
}

/** Returns the expression to sort the collection by this field, or undefined if it has no order. */
export function sortOf(field: SqlField): Sql | undefined {
  if ('list' in field) return undefined
  return 'from' in field ? field.sort : field.value
}

/** Whether rows may have no value to be sorted by. */
export function isNullable(field: SqlField): boolean {
  return 'from' in field || ('isNullable' in field && field.isNullable === true)
}

/**
 * Returns the condition, which was bound to the same fields, as SQL.
 *
 * Relations are queried once for all rows (`value in (select …)`), whose index then finds the rows; or, if
 * `most` rows match, for each row again (`exists (select …)`): so the first of them in order are found soon,
 * without a sort. `isHere`: each row of the relations counts for READ_HERE.
 */
export function where(
  condition: Condition,
  fields: Readonly<Record<string, SqlField>>,
  reading: { most: boolean; isHere: boolean },
): RawBuilder<SqlBool> {
  if (condition.type !== 'test') {
    const terms = condition.terms.map((term) => where(term, fields, reading))
    if (condition.type === 'and') return sql`(${sql.join(terms, sql` and `)})`
    // SQLite may look each term up by an index of its own, and count only the rows that pass one.
    const counted = reading.isHere ? terms.map((term) => sql`(${READ_HERE} and ${term})`) : terms
    return sql`(${sql.join(counted, sql` or `)})`
  }
  const field = fields[condition.field]!
  const { test } = condition
  if ('list' in field) {
    if (test.type === 'empty') return sql`${field.list} = '[]'`
    return sql`exists (select 1 from ${jsonMembers(field.list)} where ${passes(sql`j.value`, field.kind, test)})`
  }
  if ('from' in field) {
    const { value, from, equals, member, none } = field
    if (test.type === 'empty' && none) return none
    const passed = test.type === 'empty' ? sql<SqlBool>`true` : passes(member, field.kind, test)
    const found = reading.isHere ? sql<SqlBool>`${READ_HERE} and ${passed}` : passed
    const is = reading.most
      ? sql<SqlBool>`exists (select 1 from ${from} where ${equals} = ${value} and ${found})`
      : sql<SqlBool>`${value} in (select ${equals} from ${from} where ${found})`
    return test.type === 'empty' ? sql`not ${is}` : is
  }
  if (test.type !== 'empty') return passes(field.value, field.kind, test)
  if (field.kind === 'time') return sql`${field.value} is null`
  return sql`(${field.value} is null or ${field.value} = '')`
}

function passes(value: Sql, kind: Kind, test: Exclude<Test, { type: 'empty' }>): RawBuilder<SqlBool> {
  switch (test.type) {
    case 'equals': {
      const wanted = typeof test.value === 'boolean' ? Number(test.value) : test.value
      return kind === 'label' ? sql`lower(${value}) = ${wanted}` : sql`${value} = ${wanted}`
    }
    case 'within':
      if (test.to === undefined) return sql`${value} >= ${test.from}`
      return test.from === undefined
        ? sql`${value} < ${test.to}`
        : sql`(${value} >= ${test.from} and ${value} < ${test.to})`
    case 'among':
      return isAmong(value, test.values)
    case 'like': {
      if (test.parts.every((part) => part === '')) return sql`${value} <> ''`
      const [first = ''] = test.parts
      const like = isLike(value, test.parts)
      // Keys are folded, so that their index can find a beginning.
      const after = kind === 'name' ? successor(first) : undefined
      return after === undefined ? like : sql`(${value} >= ${first} and ${value} < ${after} and ${like})`
    }
  }
}

/**
 * Returns the least text after all that begin with `prefix`, in the order of their UTF-8 bytes, or undefined
 * if there is none.
 */
export function successor(prefix: string): string | undefined {
  const points = [...prefix]
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const next = last.codePointAt(0)! + 1
    // Surrogates are no characters of UTF-8.
    if (next <= 0x10ffff) return points.join('') + String.fromCodePoint(next === 0xd800 ? 0xe000 : next)
  }
  return undefined
}
