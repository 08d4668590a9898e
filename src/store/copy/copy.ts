/**
 * Carries a store from one database to another, whichever engine each has. Rows go in the order of their keys, some
 * in each transaction, together with the place that the copy has reached: whatever interrupts it, the next run goes on
 * there. Before the end both are compared, and the source is marked as moved before the destination may be used.
 */
import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { chainRows, type Head } from '../../audit/chain.ts'
import type { AuditEvent, FieldsOf } from '../../audit/events/catalogue.ts'
import { type AuditVerdict, verifyAudit } from '../../audit/verify.ts'
import { type DatabasePlace, placeText } from '../../model/database.ts'
import { StoreError } from '../engine/errors.ts'
import {
  decodeState,
  encodeState,
  movedText,
  STATE,
  type StoreState,
  type UnfinishedCopy,
} from '../engine/state.ts'
import { SCHEMA_VERSION } from '../migrate.ts'
import { auditOf, compareStores, type TableDigest } from './compare.ts'
import { withPostgres } from './postgres-side.ts'
import { carryRows, storedIn, transaction } from './rows.ts'
import { quoted, requireTables, type Side } from './side.ts'
import { withSqlite } from './sqlite-side.ts'
import { type Table, tablesOfProgram, VERSIONS } from './tables.ts'
import { textOf, valuesOf } from './values.ts'

/** Tables with rows in a database that no broker has used: those of the factory. */
const FACTORY_COLUMN = 'is_factory'

export interface CopyOptions {
  from: DatabasePlace
  to: DatabasePlace
  /** Data folders of those that are a configuration's: each knows the latest timeline of its server. */
  folders?: Partial<Record<'from' | 'to', string>>
  /** User that copies, for the event at the destination. */
  actor: Pick<FieldsOf<'store.copy'>, 'user' | 'uid' | 'sudo_user'>
  /** Milliseconds since the epoch. */
  now: () => number
  /** Called after each transaction, and while rows are compared; the copy waits for it. */
  onProgress?: (progress: Progress) => void | Promise<void>
}

export interface Progress {
  step: 'copy' | 'compare'
  table: string
  /** Rows of this table in this run. */
  rows: number
}

export interface CopyResult {
  /** Whether an earlier run had finished it, and its answer was lost: nothing is carried or compared then. */
  isAlreadyDone: boolean
  /** Whether it went on with an earlier run. */
  isResumed: boolean
  tables: TableDigest[]
  audit: AuditVerdict
  /** Number of texts in which U+0000 became U+FFFD. */
  replaced: number
  /** The first difference, in words: the destination stays unusable then. */
  fault?: string
}

/**
 * Copies a store; both may be of either engine, and no other process may use them.
 * @throws StoreError if one of them is not fit for it, with what to do; and if a connection is lost
 */
export async function copyStore(options: CopyOptions): Promise<CopyResult> {
  const { from, to, folders } = options
  if (placeText(from) === placeText(to)) throw new StoreError(`${placeText(from)} is both --from and --to`)
  const tables = tablesOfProgram()
  return await withSide({ place: from, folder: folders?.from }, false, async (source) => {
    await requireSource(source, tables)
    return await withSide({ place: to, folder: folders?.to }, true, async (destination) => {
      const copy = new Copy(source, destination, tables, options)
      return await copy.run()
    })
  })
}

/**
 * Lets a store be used again that was moved. Its cookies, tickets and invitations end: they may have been used in the
 * copy. `folder`: its data folder, absent if it is not known. Returns whether it had been moved.
 * @throws StoreError
 */
export async function reopenStore(
  place: DatabasePlace,
  { actor, now, folder }: Pick<CopyOptions, 'actor' | 'now'> & { folder?: string | undefined },
): Promise<boolean> {
  return await withSide({ place, folder }, false, async (side) => {
    if (!(await side.tables()).has('settings')) throw new StoreError(`${side.place} is no store`)
    await requireVersion(side)
    const state = await stateOf(side)
    if (state?.state !== 'moved') return false
    const fields: FieldsOf<'store.reopen'> = { ...actor, object: state.to }
    await transaction(side, async () => {
      for (const table of ['sign_ins', 'provider_sessions', 'offline_proofs', 'tickets', 'invitations'])
        await side.run(`delete from ${table}`)
      await appendEvent(side, { time: now(), code: 'store.reopen', fields })
      await side.run('delete from settings where name = ?', [STATE])
    })
    return true
  })
}

function withSide<T>(
  { place, folder }: { place: DatabasePlace; folder: string | undefined },
  isNew: boolean,
  work: (side: Side) => Promise<T>,
): Promise<T> {
  return 'file' in place ? withSqlite(place.file, isNew, work) : withPostgres(place.postgres, folder, work)
}

class Copy {
  readonly #source: Side
  readonly #destination: Side
  readonly #tables: readonly Table[]
  readonly #options: CopyOptions

  constructor(source: Side, destination: Side, tables: readonly Table[], options: CopyOptions) {
    this.#source = source
    this.#destination = destination
    this.#tables = tables
    this.#options = options
  }

  async run(): Promise<CopyResult> {
    const [source, destination] = [this.#source, this.#destination]
    // No other process writes there from here on.
    await source.begin(this.#tables)
    const done = await this.#done()
    if (done) return done
    const begun = await this.#begun()
    const state = begun ?? (await this.#begin())
    try {
      await this.#copy(state)
      const { onProgress } = this.#options
      let replaced = 0
      const compared = await compareStores(source, destination, this.#tables, {
        stored: (row, table) => storedIn(destination, row, table, () => replaced++),
        onRows: (table, rows) => onProgress?.({ step: 'compare', table, rows }),
      })
      const end = await auditOf(source).last()
      const audit = await verifyAudit(auditOf(destination), { known: end ? [end] : [] })
      const result = {
        isAlreadyDone: false,
        isResumed: begun !== undefined,
        ...compared,
        audit,
        replaced,
      }
      if (compared.fault === undefined) await this.#finish(state, end)
      else await putState(destination, { ...state, fault: compared.fault })
      return result
    } catch (error) {
      throw new StoreError(
        `${(error as Error).message}; the copy is not finished: the same command goes on where it stood`,
      )
    }
  }

  /** Returns the result of an earlier run that was finished: its last answer may have been lost. */
  async #done(): Promise<CopyResult | undefined> {
    const [source, destination] = [this.#source, this.#destination]
    const moved = await stateOf(source)
    if (moved?.state !== 'moved' || moved.to !== destination.place) return undefined
    const found = await destination.tables()
    if (!found.has(VERSIONS) || !found.has('settings') || !found.has('audit')) return undefined
    if (await stateOf(destination)) return undefined
    const end = await auditOf(source).last()
    const [row] = await auditOf(destination).range((end?.sequence ?? 0) + 1, 1)
    if (row?.code !== 'store.copy' || row.time !== moved.time) return undefined
    const { fields } = JSON.parse(row.json) as { fields: Partial<FieldsOf<'store.copy'>> }
    if (fields.object !== source.place || fields.digest !== (end && digestOf(end))) return undefined
    const audit = await verifyAudit(auditOf(destination), { known: end ? [end] : [] })
    return { isAlreadyDone: true, isResumed: false, tables: [], audit, replaced: 0 }
  }

  /** Returns the state of an earlier run that this one goes on with. @throws StoreError if the place is taken */
  async #begun(): Promise<UnfinishedCopy | undefined> {
    const { place } = this.#destination
    const moved = await stateOf(this.#source)
    const state = await this.#stateThere()
    if (state?.state === 'copying' && state.from !== this.#source.place)
      throw new StoreError(
        `${place} has an unfinished copy of ${state.from}: finish that one, or name an empty database`,
      )
    const own = state?.state === 'copying' ? state : undefined
    if (moved?.state === 'moved' && moved.id !== own?.id)
      throw new StoreError(`${this.#source.place}: ${movedText(moved)}`)
    if (!own) return undefined
    const isSame = own.fault === undefined && own.head === (await this.#head())
    return isSame ? own : undefined
  }

  /** Returns the destination's state. @throws StoreError unless it is empty, or a copy that is not finished */
  async #stateThere(): Promise<StoreState | undefined> {
    const side = this.#destination
    const found = await side.tables()
    if (found.size === 0) return undefined
    if (!found.has(VERSIONS) || !found.has('settings')) {
      const names = [...found.keys()].sort().slice(0, 3).join(', ')
      throw new StoreError(
        `${side.place} has tables that are not sallyport's (${names}): name an empty database`,
      )
    }
    await requireVersion(side)
    const state = await stateOf(side)
    if (state?.state === 'copying') return state
    const used: string[] = []
    for (const [name, columns] of found) {
      if (name === VERSIONS) continue
      const own = columns.includes(FACTORY_COLUMN) ? `where ${FACTORY_COLUMN} = 0` : ''
      const rows = await side.run(`select 1 from ${quoted(name)} ${own} limit 1`)
      if (rows.length > 0) used.push(name)
    }
    if (used.length === 0) return undefined
    throw new StoreError(
      `${side.place} has data already (in ${used.sort().slice(0, 3).join(', ')}${used.length > 3 ? ', …' : ''}), ` +
        'and a copy writes over nothing: name an empty database',
    )
  }

  /** Empties the destination, whose rows are the factory's or those of an unfinished copy. */
  async #begin(): Promise<UnfinishedCopy> {
    const side = this.#destination
    await side.migrate(this.#options.now())
    await requireTables(side, this.#tables)
    const state: UnfinishedCopy = {
      state: 'copying',
      id: randomUUID(),
      from: this.#source.place,
      head: await this.#head(),
    }
    await transaction(side, async () => {
      await side.clear(this.#tables)
      await putState(side, state)
    })
    return state
  }

  /** Returns a text that another content of the source has not, as far as a broker or a command has changed it. */
  async #head(): Promise<string> {
    const last = await auditOf(this.#source).last()
    const counters: bigint[] = []
    for (const table of this.#tables) if (table.isCounted) counters.push(await this.#source.counter(table))
    const hash = last ? Buffer.from(last.hash).toString('hex') : 'none'
    return `schema ${SCHEMA_VERSION}, row ${last?.sequence ?? 0}, hash ${hash}, counters ${counters.join(' ')}`
  }

  async #copy(state: UnfinishedCopy): Promise<void> {
    const { at } = state
    const destination = this.#destination
    await carryRows(this.#source, destination, this.#tables, {
      from: at && { table: at.table, after: valuesOf(at.after) },
      stored: (row, table) => storedIn(destination, row, table),
      step: (work, reached) =>
        transaction(destination, async () => {
          await work()
          if (reached)
            await putState(destination, {
              ...state,
              at: { table: reached.table, after: textOf(reached.after) },
            })
        }),
      onRows: (table, rows) => this.#options.onProgress?.({ step: 'copy', table, rows }),
    })
  }

  /** At no moment a broker may start on both. The destination's log begins its own way with the event. */
  async #finish({ id }: UnfinishedCopy, end: Head | undefined): Promise<void> {
    const [source, destination] = [this.#source, this.#destination]
    const time = this.#options.now()
    // A statement that waits for its locks would be done once this transaction ends.
    await source.requireStillAlone()
    await putState(source, { state: 'moved', id, to: destination.place, time })
    await source.commit()
    const fields: FieldsOf<'store.copy'> = {
      ...this.#options.actor,
      object: source.place,
      count: end?.sequence ?? 0,
      ...(end && { digest: digestOf(end) }),
    }
    await transaction(destination, async () => {
      await appendEvent(destination, { time, code: 'store.copy', fields })
      await destination.run('delete from settings where name = ?', [STATE])
    })
  }
}

const digestOf = (end: Head) => Buffer.from(end.hash).toString('hex')

async function requireSource(side: Side, tables: readonly Table[]): Promise<void> {
  const found = await side.tables()
  if (!found.has(VERSIONS) || !found.has('settings'))
    throw new StoreError(`${side.place} has no store: there is nothing to copy`)
  const version = await requireVersion(side)
  if (version < SCHEMA_VERSION)
    throw new StoreError(
      `${side.place} has schema version ${version}, this program has ${SCHEMA_VERSION}: start this version's broker on it once, and stop it`,
    )
  const state = await stateOf(side)
  if (state?.state === 'copying')
    throw new StoreError(`${side.place} is itself an unfinished copy of ${state.from}: copy that one`)
  await requireTables(side, tables)
  if ((await side.run('select 1 from settings limit 1')).length === 0)
    throw new StoreError(`no broker has used ${side.place} yet: there is nothing to copy`)
}

/** Returns the version. @throws StoreError if it is newer than the program */
async function requireVersion(side: Side): Promise<number> {
  const [row] = await side.run(`select max(version) from ${VERSIONS}`)
  const version = Number(row?.[0] ?? 0)
  if (version > SCHEMA_VERSION)
    throw new StoreError(
      `${side.place} has schema version ${version}, this program knows up to ${SCHEMA_VERSION}: use the newer program`,
    )
  return version
}

async function stateOf(side: Side): Promise<StoreState | undefined> {
  const [row] = await side.run('select value from settings where name = ?', [STATE])
  const value = row?.[0]
  return value instanceof Uint8Array ? decodeState(value) : undefined
}

async function putState(side: Side, state: StoreState): Promise<void> {
  await side.run(
    'insert into settings (name, value) values (?, ?) on conflict (name) do update set value = excluded.value',
    [STATE, encodeState(state)],
  )
}

/** Appends an event to the audit log; the next checkpoint signs it. */
async function appendEvent(side: Side, event: AuditEvent): Promise<void> {
  for (const { sequence, time, code, json, hash } of chainRows(await auditOf(side).last(), [event])) {
    const text = 'insert into audit (sequence, time, code, json, hash) values (?, ?, ?, ?, ?)'
    await side.run(text, [BigInt(sequence), BigInt(time), code, json, hash])
  }
}
