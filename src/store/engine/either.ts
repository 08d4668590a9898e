/**
 * SQL that the engines write differently. A query has both texts, and the compiler of its database takes one:
 * SQLite's the first, PostgreSQL's the other (postgres/compiler.ts). So a repository asks for what it means, and
 * knows no engine.
 */
import { type Expression, type RawBuilder, type RawNode, sql } from 'kysely'

export type Sql = RawBuilder<unknown>

/** SQLite's text, which carries the other one. */
export interface EitherNode extends RawNode {
  readonly postgres: RawNode
  /** Whether the text searches in texts, which takes long where they are many. */
  readonly isSearch: boolean
}

class Either<T> implements Expression<T> {
  readonly #node: EitherNode

  constructor(sqlite: Sql, postgres: Sql, isSearch: boolean) {
    this.#node = { ...sqlite.toOperationNode(), postgres: postgres.toOperationNode(), isSearch }
  }

  get expressionType(): T | undefined {
    return undefined
  }

  toOperationNode(): EitherNode {
    return this.#node
  }
}

export function either<T>(
  { sqlite, postgres }: { sqlite: Sql; postgres: Sql },
  { isSearch = false } = {},
): RawBuilder<T> {
  return sql<T>`${new Either<T>(sqlite, postgres, isSearch)}`
}

export function isEither(node: RawNode): node is EitherNode {
  return 'postgres' in node
}
