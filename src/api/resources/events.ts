/** The audit log for auditors: events by filters, a page at a time or as lines, and the proof of a range. */
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { EVENT_FIELDS, SEVERITIES } from '../../audit/events/fields.ts'
import { exportLine } from '../../audit/export.ts'
import {
  allOf,
  codesMeant,
  conditionsOf,
  type EventFilter,
  isBounded,
  shownEvent,
} from '../../audit/questions.ts'
import { jsonText } from '../../model/json-text.ts'
import { bind, timeSpan } from '../../search/bind.ts'
import { MAX_EXPRESSION, MAX_WILDCARDS } from '../../search/grammar.ts'
import { AUDIT_FIELDS } from '../../store/audit-fields.ts'
import type { AuditPlace, AuditRow, AuditSearch } from '../../store/store.ts'
import { sendLines } from '../access/answers.ts'
import { callerOf, holderOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { fieldsOf, pick } from '../collection/listing.ts'
import { searchOf } from '../collection/search.ts'
import type { Api, ApiDeps } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { MAX_DEFAULT_PAGE, MAX_EVENT_PAGE, MAX_ROWS_OF_PAGE } from '../http/limits.ts'
import { Turns } from '../http/pauses.ts'
import { notJson, oneOf, titled } from '../schema/fields.ts'
import { seesAll, visible } from './event-rights.ts'

export const LINES = 'application/x-ndjson'

export const EventView = titled(
  'Event',
  Type.Object(
    {
      time: Type.String({ format: 'date-time' }),
      sequence: Type.Integer({ description: 'place in the audit log' }),
      event: Type.String({ description: 'code of docs/events.md; its fields stand beside' }),
      severity: oneOf(SEVERITIES, 'severity'),
      message: Type.String({ description: 'the event as a sentence' }),
    },
    { additionalProperties: Type.Union([Type.String(), Type.Number()]) },
  ),
)

/** All fields that an event may be shown with. */
const Shown = Type.Object(
  Object.fromEntries(
    [...Object.keys(EventView.properties), ...EVENT_FIELDS].map((name) => [name, Type.Unknown()]),
  ),
)

const filter = (description: string, maxLength = 512) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }))
const time = (description: string) =>
  filter(`${description}: RFC 3339, or the beginning of a time in UTC`, 40)

const Query = Type.Object(
  {
    q: Type.Optional(
      Type.String({
        maxLength: MAX_EXPRESSION,
        description: 'only events that meet this expression, besides the other parameters',
      }),
    ),
    event: filter('codes, with commas in between; `session.*`: all that begin so', 2048),
    severity: Type.Optional(oneOf(SEVERITIES, 'severity')),
    user: filter('name of the user, `*` in it is any text'),
    target: filter('part of ACCOUNT@DOMAIN:DEVICE:SERVICE; with `*` in it, the whole'),
    session: filter('id of a session', 64),
    address: filter("address of the client, `*` in it is any text: '192.0.2.*'", 64),
    from: time('from this time on'),
    to: time('up to this time, which is included'),
    text: filter('anywhere in a value; `*` in it is any text'),
    sort: Type.Optional(
      oneOf(['sequence', '-sequence'], 'the oldest first, or (without it) the newest first'),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: -1,
        maximum: 1_000_000,
        default: MAX_DEFAULT_PAGE,
        description: `events at most, of a page ${MAX_EVENT_PAGE}; as lines also -1: all`,
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        pattern: '^\\d{1,15}(\\.\\d{1,15}\\.\\d{1,15})?$',
        description: 'X-Next-Cursor of the page before, or the `sequence` of the last event there',
      }),
    ),
    fields: Type.Optional(Type.String({ maxLength: 1024, description: 'only these fields: `a,b`' })),
  },
  { additionalProperties: false },
)

const row = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: 1e15, description }))
const ProofQuery = Type.Object(
  {
    first: row('the first row'),
    last: row('the last row; without it the end of the log'),
    from: time('from this time on, in place of `first`'),
    to: time('up to this time, in place of `last`'),
  },
  { additionalProperties: false },
)

export function registerEvents(app: Api, { deps, answers }: Context): void {
  app.get(
    '/events',
    {
      schema: {
        tags: ['Events'],
        summary: 'Events of the audit log',
        description:
          'A page; `X-Next-Cursor` says that there may be more. With `Accept: application/x-ndjson` one event a line, streamed. Only events about objects that the caller may view.',
        querystring: Query,
        response: { 200: Type.Array(EventView), ...errorResponses(400, 401, 403, 503) },
      },
    },
    async (request, reply) => {
      const { limit = MAX_DEFAULT_PAGE, ...query } = request.query
      const fields = fieldsOf(query, Shown)
      const search = searchFor(query, request)
      const show = (found: AuditRow) => pick(shownEvent(found), fields)
      if (isForLines(request)) {
        const lines = linesOf(deps, search, limit, (found) => `${jsonText(show(found))}\n`)
        return await sendLines(answers, request, reply, LINES, lines)
      }
      if (limit < 0 || limit > MAX_EVENT_PAGE) {
        const expected = `expected at most ${MAX_EVENT_PAGE}: ask for more with Accept: ${LINES}, or by pages`
        throw fieldError('invalid_field', 'limit', expected)
      }
      const end = await answers.begin(holderOf(callerOf(request)))
      try {
        const { rows, next } = await pageOf(deps, search, limit)
        if (next) reply.header('x-next-cursor', `${next.row}.${next.first}.${next.last}`)
        return rows.map(show) as ReturnType<typeof shownEvent>[]
      } finally {
        end()
      }
    },
  )

  app.get(
    '/events/proof',
    {
      // A HEAD request would count as an export, which is audited.
      exposeHeadRoute: false,
      schema: {
        tags: ['Events'],
        summary: 'A range of the audit log, with its proof',
        description:
          'All rows of the range as they were hashed, each with its hash, from a signed checkpoint to a signed checkpoint: bin/verify.mjs --range verifies it offline. It needs the right to view everything. The newest rows wait for their checkpoint, 30 seconds at most.',
        querystring: ProofQuery,
        response: { 200: notJson(LINES, 'the rows'), ...errorResponses(400, 401, 403, 404, 503) },
      },
    },
    async (request, reply) => {
      const { first, last, from, to } = request.query
      if ((first === undefined) === (from === undefined))
        throw fieldError('invalid_field', 'first', 'expected the first row, or from: a time')
      if (last !== undefined && to !== undefined)
        throw fieldError('invalid_field', 'to', 'expected last or to, not both')
      if (!seesAll(callerOf(request).rights)) throw new ApiError('forbidden')
      const span = conditionsOf(spanOf(request.query))
      const within = await deps.store.auditSearch.ends(allOf(span))
      const begin = first ?? within?.first
      if (!within || begin === undefined || begin > within.last) throw new ApiError('not_found')
      const range = await signedRange(deps, begin, Math.min(last ?? within.last, within.last))
      await record(deps.audit, request, 'audit.export', {
        ...actor(callerOf(request)),
        object: `${range.first}-${range.last}`,
      })
      return await sendLines(answers, request, reply, LINES, rowsOf(deps, range))
    },
  )
}

type Query = {
  q?: string
  sort?: 'sequence' | '-sequence'
  cursor?: string
  event?: string
  from?: string
  to?: string
} & Pick<EventFilter, 'severity' | 'user' | 'target' | 'session' | 'address' | 'text'>

/** @throws ApiError, SearchError */
function searchFor(query: Query, request: FastifyRequest): AuditSearch {
  const { q, sort, cursor, from, to, ...words } = query
  const meant = codesMeant(words.event ?? '*')
  if (!Array.isArray(meant)) {
    const expected = `expected codes of docs/events.md, such as session.open or session.*, got "${meant.unknown}"`
    throw fieldError('invalid_field', 'event', expected)
  }
  if (!isBounded(words)) {
    throw fieldError('invalid_field', 'text', `expected at most ${MAX_WILDCARDS} stars in a text`)
  }
  const asked = searchOf(q, request)
  const seen = visible(callerOf(request).rights)
  const condition = allOf([
    ...conditionsOf({ ...words, ...spanOf(query) }),
    ...(asked ? [bind(asked, AUDIT_FIELDS)] : []),
    ...(seen ? [seen] : []),
  ])
  const [at, first, last] = (cursor ?? '').split('.').map(Number)
  return {
    newestFirst: sort !== 'sequence',
    ...(condition && { condition }),
    ...(cursor !== undefined && {
      after: { row: at!, ...(first !== undefined && last !== undefined && { first, last }) },
    }),
  }
}

/** @throws ApiError `invalid_field` */
function spanOf({ from, to }: { from?: string; to?: string }): Pick<EventFilter, 'from' | 'before'> {
  const meant = (field: string, text: string) => {
    const span = timeSpan(text)
    if (span) return span
    throw fieldError('invalid_field', field, 'expected a time such as 2031-12-31T23:59:59Z, or its beginning')
  }
  return {
    ...(from !== undefined && { from: meant('from', from).from }),
    ...(to !== undefined && { before: meant('to', to).to }),
  }
}

/** Whether the client asks for lines. */
function isForLines({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').split(',').some((one) => one.split(';')[0]!.trim().toLowerCase() === LINES)
}

type Store = Pick<ApiDeps, 'store'>

/** Reads rows until the page is full, the log ends, or as many as one request may read are read. */
async function pageOf(
  { store }: Store,
  search: AuditSearch,
  limit: number,
): Promise<{ rows: AuditRow[]; next?: AuditPlace }> {
  const rows: AuditRow[] = []
  if (limit === 0) return { rows }
  let begin: number | undefined
  for await (const { rows: found, place, isLast } of store.auditSearch.search(search)) {
    begin ??= search.after?.row ?? (search.newestFirst ? place.last : place.first)
    rows.push(...found.slice(0, limit - rows.length))
    if (rows.length === limit) {
      const { sequence } = rows.at(-1) ?? { sequence: place.row }
      return isLast && sequence === found.at(-1)?.sequence
        ? { rows }
        : { rows, next: { ...place, row: sequence } }
    }
    if (isLast) return { rows }
    if (Math.abs(place.row - begin) >= MAX_ROWS_OF_PAGE) return { rows, next: place }
  }
  return { rows }
}

/** Yields the lines of each stretch, and nothing for one without any: the client is still there. */
async function* linesOf(
  { store }: Store,
  search: AuditSearch,
  limit: number,
  line: (row: AuditRow) => string,
): AsyncGenerator<string, undefined> {
  const turns = new Turns()
  let left = limit === -1 ? Number.POSITIVE_INFINITY : limit
  if (left === 0) return
  for await (const { rows } of store.auditSearch.search(search)) {
    let text = ''
    for (const found of rows.slice(0, left)) {
      text += line(found)
      await turns.next()
    }
    yield text
    left -= rows.length
    if (left <= 0) return
  }
}

interface Range {
  first: number
  last: number
}

/**
 * Returns the range from the checkpoint before to the one after it, as far as there are any.
 * @throws ApiError `busy` if no checkpoint has signed any of it yet
 */
async function signedRange({ store }: Store, first: number, last: number): Promise<Range> {
  const [begin, end] = await Promise.all([
    store.auditSearch.checkpoints(first),
    store.auditSearch.checkpoints(last),
  ])
  const [oldest] = await store.audit.range(0, 1)
  // The first row of all rests on no other; that of a log which was handed over does, so a checkpoint is awaited.
  const from = begin.before ?? (oldest?.sequence === 1 ? 1 : begin.from)
  const to = end.from ?? end.before
  if (from === undefined || to === undefined || to < from) throw new ApiError('busy')
  return { first: from, last: to }
}

/** @throws Error if rows of the range were handed over meanwhile */
async function* rowsOf({ store }: Store, { first, last }: Range): AsyncGenerator<string, undefined> {
  const after = { row: first - 1, first, last }
  let next = first
  for await (const { rows } of store.auditSearch.search({ newestFirst: false, after })) {
    for (const { sequence } of rows) {
      if (sequence !== next++)
        throw new Error(`row ${next - 1} of the audit log is not there: the next is ${sequence}`)
    }
    yield rows.map(exportLine).join('')
  }
  if (next !== last + 1) throw new Error(`the audit log ends before row ${last}`)
}
