/** `GET /export/TYPE`: the objects of a type as CSV. */
import { Readable } from 'node:stream'
import { Type } from 'typebox'
import { DEFAULT_SEPARATOR, SEPARATOR_RULE, separatorOf } from '../../csv/separator.ts'
import { type ApiRequest, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { CSV_NAMES } from '../access/table-names.ts'
import type { Api } from '../http/deps.ts'
import { fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, notJson } from '../schema/fields.ts'
import { exportTable } from './exporter.ts'

export const separatorParameter = {
  separator: Type.Optional(
    Type.String({
      maxLength: 8,
      description: `between two cells: one character, percent-encoded where it has to be, or \`tab\`; \`${DEFAULT_SEPARATOR}\` unless given`,
    }),
  ),
}

/** @throws ApiError `invalid_field` */
export function wantedSeparator(text: string | undefined): string {
  const separator = text === undefined ? DEFAULT_SEPARATOR : separatorOf(text)
  if (separator === undefined) throw fieldError('invalid_field', 'separator', SEPARATOR_RULE)
  return separator
}

export function registerExport(app: Api, context: Context): void {
  for (const name of CSV_NAMES) {
    app.get(
      `/export/${name}`,
      {
        schema: {
          tags: ['CSV'],
          summary: `Export: ${name}`,
          description:
            'All objects as CSV in UTF-8 with a BOM. The first row names the columns, after a `#`; docs/csv.md says what the cells mean. Secrets are not among them.',
          querystring: exact(separatorParameter),
          response: { 200: notJson('text/csv', 'the table'), ...errorResponses(400, 401, 403) },
        },
      },
      async (request, reply) => {
        const separator = wantedSeparator(request.query.separator)
        reply
          .header('content-disposition', `attachment; filename="${name}.csv"`)
          .type('text/csv; charset=utf-8')
        if (request.method === 'HEAD') return reply.send(Readable.from([]))
        const who = { ...actor(callerOf(request)), object_type: name }
        await record(context.deps.audit, request, 'object.export', who)
        return reply.send(Readable.from(exportTable(context, asker(request), name, separator)))
      },
    )
  }
}

/** Returns the request for resources, without parameters: each row brings its own. */
export function asker(request: ApiRequest): ApiRequest {
  const { caller, log, source } = request
  return { caller, params: {}, log, source }
}
