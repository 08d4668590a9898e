/** JSON in SQL: lists of rows, and the members of a list. */
import { type RawBuilder, sql } from 'kysely'
import { either, type Sql } from './either.ts'

/** Aggregates rows: the JSON array of their values, in that order; `[]` without any. */
export function jsonList(value: Sql, order: Sql): RawBuilder<string> {
  return either({
    sqlite: sql`json_group_array(${value} order by ${order})`,
    postgres: sql`coalesce(json_agg(${value} order by ${order})::text, '[]')`,
  })
}

/** Returns the JSON object with these members. */
export function jsonObject(...parts: readonly [name: string, value: Sql][]): Sql {
  const members = sql.join(parts.flatMap(([name, value]) => [sql.lit(name), value]))
  return either({ sqlite: sql`json_object(${members})`, postgres: sql`json_build_object(${members})` })
}

/** A FROM clause over the texts of a JSON array, as the column `value` of `j`. */
export function jsonMembers(array: Sql): Sql {
  return either({
    sqlite: sql`json_each(${array}) as j`,
    // Without a collation of their own, the texts would be compared and folded by the database's.
    postgres: sql`(select value collate "C" as value from json_array_elements_text((${array})::json)) as j`,
  })
}

/** Whether the value is one of these texts: one parameter for any number of them, and so one text to prepare. */
export function isAmong(value: Sql, texts: Iterable<string>): RawBuilder<boolean> {
  const array = JSON.stringify([...texts])
  return sql<boolean>`${value} in (select j.value from ${jsonMembers(sql`${array}`)})`
}
