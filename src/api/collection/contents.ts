/** Searches by the content of sessions (src/search/words.ts), for callers that may see recordings. */
import type { Contents } from '../../contents/contents.ts'
import { MAX_SESSIONS_FOUND } from '../../contents/contents.ts'
import type { Search } from '../../search/bind.ts'
import { type Comparison, SearchError } from '../../search/grammar.ts'
import { type ContentTest, contentComparisons, contentTestOf, spanOfBegin } from '../../search/words.ts'
import { type ApiRequest, callerOf, requireRight } from '../access/caller.ts'
import { actor, record } from '../access/events.ts'
import type { ApiDeps } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'

type Deps = Pick<ApiDeps, 'contents' | 'audit'>

/** A comparison with a content field, and its query to the index. */
export interface ContentSearch {
  contents: Contents
  asked: { comparison: Comparison; test: ContentTest }[]
}

/**
 * Returns the search's queries to the index, or undefined if it has none. The search is audited before it
 * runs.
 * @throws SearchError; ApiError `forbidden`, `invalid_search` without such an index, `sealed_to_auditors`
 */
export async function contentSearchOf(
  search: Search,
  request: ApiRequest,
  { contents, audit }: Deps,
  session?: string,
): Promise<ContentSearch | undefined> {
  const comparisons = contentComparisons(search.expression)
  if (comparisons.length === 0) return undefined
  requireRight(request, 'recordings', 'view')
  const asked = comparisons.map((comparison) => ({
    comparison,
    test: contentTestOf(comparison, search.variables),
  }))
  if (!contents)
    throw fieldError('invalid_search', 'q', 'sessions are not searched here: recordings.search is off')
  const fields = new Set(asked.map(({ test }) => test.field))
  if (fields.has('output') && contents.mode !== 'full') {
    if (contents.isSealed) throw new ApiError('sealed_to_auditors')
    throw fieldError('invalid_search', 'q', 'output is not searched here: recordings.search is commands')
  }
  await record(audit, request, 'recording.search', {
    ...actor(callerOf(request)),
    ...(session !== undefined && { session }),
    method: [...fields].join(' '),
  })
  return { contents, asked }
}

/** Returns the search with the index's results filled in. @throws as contentSearchOf */
export async function withContents(
  search: Search | undefined,
  request: ApiRequest,
  deps: Deps,
): Promise<Search | undefined> {
  const content = search && (await contentSearchOf(search, request, deps))
  if (!content) return search
  const found = new Map<Comparison, readonly string[]>()
  for (const { comparison, test } of content.asked) {
    const sessions = await content.contents.index.sessionsWith(test, spanOfBegin(search))
    if (typeof sessions === 'string') {
      const much =
        sessions === 'too_many'
          ? `more than ${MAX_SESSIONS_FOUND} sessions`
          : 'more lines than can be read in time'
      throw new SearchError(
        'value',
        comparison.at.value,
        'a narrower search (more words, begin~2031-06)',
        much,
      )
    }
    found.set(comparison, sessions)
  }
  return { ...search, found }
}
