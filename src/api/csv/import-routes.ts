/** `POST /import/TYPE`: imports a table. */

import { Readable } from 'node:stream'
import type { FastifySchemaCompiler } from 'fastify'
import { type Static, type TSchema, Type } from 'typebox'
import { jsonText } from '../../model/json-text.ts'
import type { Context } from '../access/context.ts'
import { CSV_NAMES } from '../access/table-names.ts'
import { reviewed } from '../collection/review.ts'
import type { Api, UntypedApi } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { IMPORT_TIMEOUT, MAX_IMPORT_BODY } from '../http/limits.ts'
import { exact, oneOf, titled } from '../schema/fields.ts'
import { validatorCompiler } from '../schema/validation.ts'
import { asker, separatorParameter, wantedSeparator } from './export-routes.ts'
import { type ImportedRow, importTable } from './importer.ts'

const Line = titled(
  'ImportedRow',
  exact({
    row: Type.Integer({ description: 'from 1, as a spreadsheet shows it' }),
    result: oneOf(['created', 'updated', 'unchanged'], 'what became of it'),
    object: Type.String({ description: 'how events call it' }),
  }),
)
const query = exact({
  ...separatorParameter,
  dry_run: Type.Optional(oneOf(['true', 'false'], 'check everything and change nothing')),
})

/** Validates all but the body, which is still arriving. */
const allButBody: FastifySchemaCompiler<TSchema> = (route) =>
  route.httpPart === 'body' ? () => true : validatorCompiler(route)

/** Lines of the report per piece. */
const LINES_AT_ONCE = 500

export function registerImport(app: Api, context: Context): void {
  let isRunning = false

  app.register(async (plugin) => {
    const scope = plugin as unknown as UntypedApi
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('text/csv', (_request, payload, done) => done(null, payload))
    for (const name of CSV_NAMES) {
      scope.post(
        `/import/${name}`,
        {
          validatorCompiler: allButBody,
          schema: {
            tags: ['CSV'],
            summary: `Import: ${name}`,
            description:
              'Creates and changes objects, one for each row of a CSV table (`Content-Type: text/csv`, UTF-8), all of them or none. docs/csv.md says what the cells mean. With errors the answer is `invalid_csv` with the row and column of each. One import runs at a time.',
            consumes: ['text/csv'],
            body: Type.String({ description: 'the table' }),
            querystring: query,
            response: {
              200: Type.Array(Line),
              ...errorResponses(400, 401, 403, 404, 408, 409, 413, 415, 503),
            },
          },
        },
        async (request, reply) => {
          const { separator, dry_run } = request.query as Static<typeof query>
          const options = { separator: wantedSeparator(separator), dryRun: dry_run === 'true' }
          if (!(request.body instanceof Readable)) throw new ApiError('unsupported_media_type')
          if (isRunning) throw new ApiError('busy')
          isRunning = true
          request.raw.socket.setTimeout?.(IMPORT_TIMEOUT)
          try {
            const body = await bodyOf(request.body)
            const rows = await importTable(context, asker(request), name, body, options)
            await reviewed(context, request)
            reply.type('application/json')
            return reply.send(Readable.from(report(rows)))
          } finally {
            isRunning = false
          }
        },
      )
    }
  })
}

/**
 * Reads the whole table before any row is handled: a slow client, or one slowed down by the handling, would
 * exceed the time limit of its request.
 * @throws ApiError `payload_too_large`, `request_timeout`
 */
async function bodyOf(body: Readable): Promise<Readable> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    // On too much data the server discards the rest, so that the client sees the answer.
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
      size += chunk.length
      if (MAX_IMPORT_BODY < size) throw new ApiError('payload_too_large')
      chunks.push(chunk)
    }
  } catch (error) {
    // Either side has closed the connection.
    if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') throw new ApiError('request_timeout')
    throw error
  }
  return Readable.from(chunks)
}

/** Yields a JSON array in pieces. */
function* report(rows: readonly ImportedRow[]): Generator<string> {
  for (let from = 0; from < rows.length; from += LINES_AT_ONCE) {
    const lines = rows
      .slice(from, from + LINES_AT_ONCE)
      .map(({ row, result, object }) => jsonText({ row, result, object }))
    yield `${from === 0 ? '[' : ','}${lines.join(',\n')}`
  }
  yield rows.length === 0 ? '[]' : ']'
}
