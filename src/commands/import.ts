/** `sallyport import TYPE FILE`. */
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { jsonLine } from '../../recordings/decode/frames/payload.ts'
import { type ImportedRow, importTable } from '../api/csv/importer.ts'
import { ApiError, ERRORS } from '../api/http/errors.ts'
import { cleanValue } from '../audit/events/clean.ts'
import { runningHolder } from '../host/data-folder.ts'
import { besideBroker } from './beside.ts'
import { type Command, UsageError } from './command.ts'
import { plain } from './output.ts'
import { contextOf, separatorOption, typeOf, whoRunsThis } from './tables.ts'

/**
 * The most changes beside a running broker, which has to wait for the database meanwhile: a few tenths of a
 * second. An import over the API does not block the rest of the broker.
 */
const MAX_CHANGES_BESIDE = 10_000

export const importCommand: Command = {
  synopsis: [
    [
      'import TYPE FILE [--separator ;] [--dry-run] [--json]',
      'create and change objects from a CSV table (-: standard input)',
    ],
  ],
  options: { separator: { type: 'string' }, 'dry-run': { type: 'boolean' }, json: { type: 'boolean' } },
  async run(invocation) {
    const [type, file, ...more] = invocation.words
    const name = typeOf(type)
    if (file === undefined || more.length > 0) throw new UsageError('expected import TYPE FILE')
    const { options } = invocation
    const dryRun = options['dry-run'] === true
    const separator = separatorOption(invocation)
    return await besideBroker(invocation, async (beside) => {
      const source = file === '-' ? process.stdin : createReadStream(file)
      const isBeside = runningHolder(join(beside.config.dataDir, 'sallyport.pid')) !== undefined
      const limit = { changes: MAX_CHANGES_BESIDE, error: tooMany }
      try {
        const rows = await importTable(contextOf(beside), whoRunsThis(), name, source, {
          separator,
          dryRun,
          ...(isBeside && { limit }),
        })
        report(rows, { dryRun, json: options['json'] === true })
        return 0
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        for (const line of linesOf(error)) process.stderr.write(`${cleanValue(line)}\n`)
        return 1
      }
    })
  },
}

function tooMany(changes: number): Error {
  return new Error(
    `a broker is running on this data, and ${changes} changes would hold it up: use POST /api/import, or stop it first`,
  )
}

function report(rows: readonly ImportedRow[], { dryRun, json }: { dryRun: boolean; json: boolean }): void {
  for (const { row, result, object } of rows) {
    process.stdout.write(
      json ? jsonLine({ row, result, object }) : plain(`row ${row}: ${result} ${object}\n`),
    )
  }
  if (json) return
  const count = (wanted: ImportedRow['result']) => rows.filter(({ result }) => result === wanted).length
  const counts = `${count('created')} created, ${count('updated')} updated, ${count('unchanged')} unchanged`
  process.stdout.write(dryRun ? `dry run, nothing was changed: ${counts}\n` : `${counts}\n`)
}

function linesOf({ code, details }: ApiError): string[] {
  const lines = details.map(({ row, column, field, message }) => {
    const place = [
      ...(row === undefined ? [] : [`row ${row}`]),
      ...(column === undefined ? [] : [`column ${column}`]),
    ]
    const where = `${place.join(', ')}${field === undefined ? '' : ` (${field})`}`
    return where === '' ? message : `${where}: ${message}`
  })
  return [`sallyport: ${ERRORS[code].description}`, ...lines]
}
