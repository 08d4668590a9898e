/**
 * The condition of the operator `~`: a text contains parts in their order, the first at its beginning and the
 * last at its end, without regard to the case of a to z. Never LIKE, whose time is the product of the lengths of
 * text and pattern.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { either, type Sql } from './either.ts'

/** `parts`: two or more, folded. */
export function isLike(value: Sql, parts: readonly string[]): RawBuilder<SqlBool> {
  return either<SqlBool>(
    { sqlite: sql`is_like(${value}, ${JSON.stringify(parts)})`, postgres: inOrder(value, parts) },
    { isSearch: true },
  )
}

/** One part with open ends needs no function of ours. */
function inOrder(value: Sql, parts: readonly string[]): Sql {
  const [first, middle, last] = parts
  if (parts.length === 3 && first === '' && last === '') return sql`strpos(lower(${value}), ${middle}) > 0`
  return sql`is_like(${value}, array(select json_array_elements_text(${JSON.stringify(parts)}::json)))`
}
