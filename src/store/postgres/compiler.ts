/** Compiles queries for PostgreSQL, and marks those that search in texts. */
import {
  type CompiledQuery,
  PostgresQueryCompiler,
  type QueryId,
  type RawNode,
  type RootOperationNode,
} from 'kysely'
import { isEither } from '../engine/either.ts'

export interface PostgresQuery extends CompiledQuery {
  /** Whether it looks for texts, and may take no longer than a search. */
  readonly isSearch: boolean
}

export class PostgresCompiler extends PostgresQueryCompiler {
  #isSearch = false

  override compileQuery(node: RootOperationNode, queryId: QueryId): PostgresQuery {
    this.#isSearch = false
    return { ...super.compileQuery(node, queryId), isSearch: this.#isSearch }
  }

  protected override visitRaw(node: RawNode): void {
    if (isEither(node)) {
      this.#isSearch ||= node.isSearch
      super.visitRaw(node.postgres)
    } else super.visitRaw(node)
  }
}

/** Whether the query was compiled as a search. */
export function isSearch(query: CompiledQuery): boolean {
  return 'isSearch' in query && query.isSearch === true
}
