/** `sallyport store copy` and `sallyport store reopen`. */
import { readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { jsonLine } from '../../recordings/decode/frames/payload.ts'
import { DatabaseUrlError, readDatabaseUrl } from '../config/database-url.ts'
import { loadConfig } from '../config/load.ts'
import { type DatabasePlace, placeText } from '../model/database.ts'
import { Secret } from '../model/secret.ts'
import { type CopyResult, copyStore, type Progress, reopenStore } from '../store/copy/copy.ts'
import { type Command, type Invocation, textOption, UsageError } from './command.ts'
import { localActor } from './local-user.ts'
import { plain } from './output.ts'

/** Milliseconds between two lines about the progress. */
const PROGRESS_MS = 5000
/** Name of the file of SQLite in a data folder. */
const FILE = 'sallyport.db'

type End = 'from' | 'to'

export const storeCommand: Command = {
  synopsis: [
    [
      'store copy [--from URL] [--to URL] [--json]',
      "carry the store to another database: sqlite:FILE or postgres://USER@HOST/NAME; without one of them, the configuration's",
    ],
    ['store reopen [--from URL]', 'let a store be used again that was copied to another database'],
  ],
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    'from-password-file': { type: 'string' },
    'to-password-file': { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(invocation) {
    const [action, ...more] = invocation.words
    // A word may be a URL with a password: it is not shown.
    if (more.length > 0) throw new UsageError('expected databases behind --from and --to')
    if (action === 'copy') return await copy(invocation)
    if (action === 'reopen') return await reopen(invocation)
    throw new UsageError('expected store copy or store reopen')
  },
}

async function copy(invocation: Invocation): Promise<number> {
  if (invocation.options['from'] === undefined && invocation.options['to'] === undefined)
    throw new UsageError('store copy expects --from URL, --to URL, or both')
  const [from, to] = [placeOf(invocation, 'from'), placeOf(invocation, 'to')]
  const folders = { ...folderOf(invocation, 'from'), ...folderOf(invocation, 'to') }
  const result = await copyStore({
    from,
    to,
    folders,
    actor: localActor(),
    now: Date.now,
    onProgress: reporter(),
  })
  process.stdout.write(
    invocation.options['json'] === true
      ? jsonLine({ from: placeText(from), to: placeText(to), ...result })
      : plain(textOfResult(from, to, result)),
  )
  return result.fault !== undefined || result.audit.fault ? 1 : 0
}

async function reopen(invocation: Invocation): Promise<number> {
  const place = placeOf(invocation, 'from')
  const { from: folder } = folderOf(invocation, 'from')
  const wasMoved = await reopenStore(place, { actor: localActor(), now: Date.now, folder })
  const name = placeText(place)
  process.stdout.write(
    wasMoved
      ? `a broker may use ${name} again, as it was when it was copied; let none use the copy any more\n`
      : `${name} was not moved: nothing was changed\n`,
  )
  return 0
}

/** Returns the store that an option names, or the configuration's. Paths begin at the working directory. */
function placeOf(invocation: Invocation, end: End): DatabasePlace {
  const url = textOption(invocation, end)
  const file = textOption(invocation, `${end}-password-file`)
  const place = url === undefined ? loadConfig(invocation.config).database : read(url, end)
  if (file === undefined) return place
  if (!('postgres' in place)) throw new UsageError(`--${end}-password-file: a file of SQLite has no password`)
  if (place.postgres.password)
    throw new UsageError(`--${end}-password-file: that database has a password already: take one of them out`)
  const password = Secret.of(readFileSync(file, 'utf8').replace(/\r?\n$/, ''))
  return { postgres: { ...place.postgres, password } }
}

/** Returns the data folder of the configuration, if its store is meant. */
function folderOf(invocation: Invocation, end: End): Partial<Record<End, string>> {
  return textOption(invocation, end) === undefined ? { [end]: loadConfig(invocation.config).dataDir } : {}
}

function read(url: string, end: End): DatabasePlace {
  try {
    if (!/^(sqlite|postgres|postgresql):/.test(url))
      throw new DatabaseUrlError('expected sqlite:FILE or postgres://USER@HOST/NAME')
    return readDatabaseUrl(url, (path) => absolute(path))
  } catch (error) {
    if (error instanceof DatabaseUrlError) throw new UsageError(`--${end}: ${error.message}`)
    throw error
  }
}

/** A data folder stands for the file in it. */
function absolute(path: string): string {
  const whole = resolve(path)
  return statSync(whole, { throwIfNoEntry: false })?.isDirectory() ? join(whole, FILE) : whole
}

/** Returns a function that writes a line to standard error now and then. */
function reporter(): (progress: Progress) => void {
  let next = performance.now() + PROGRESS_MS
  return ({ step, table, rows }) => {
    if (performance.now() < next) return
    next = performance.now() + PROGRESS_MS
    process.stderr.write(`sallyport: ${step === 'copy' ? 'copied' : 'compared'} ${rows} rows of ${table}\n`)
  }
}

function textOfResult(from: DatabasePlace, to: DatabasePlace, result: CopyResult): string {
  const { tables, audit, replaced, fault, isResumed, isAlreadyDone } = result
  const [source, destination] = [placeText(from), placeText(to)]
  if (fault !== undefined)
    return `${destination} differs from ${source}: ${fault}\nno broker starts on it; run the command again to begin anew\n`
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  const lines = [
    isAlreadyDone
      ? `${destination} had all of ${source} already: an earlier run finished the copy`
      : `${destination} has all of ${source}${isResumed ? ', from where the copy stood' : ''}: ${tables.length} tables, ${rows} rows, compared one by one`,
    audit.fault
      ? `the audit log has a fault, there and here: row ${audit.fault.sequence}: ${audit.fault.code}: ${audit.fault.message}`
      : `the audit log is in order: ${audit.rows} rows, head ${audit.head ?? 'none'}`,
  ]
  if (replaced > 0)
    lines.push(`${replaced} texts had the character U+0000, which PostgreSQL cannot store: it became U+FFFD`)
  lines.push(
    `no broker starts on ${source} any more: set database.url in the configuration to the new place, and start the broker`,
    'recordings, master key and all other files of the data folder stay where they are',
  )
  return `${lines.join('\n')}\n`
}
