/**
 * Imports a table, all of it or nothing. First every row is read and planned, which changes nothing and finds
 * the errors; then all changes are audited; then they are made, in one transaction. Rows do not depend on
 * each other, and a plan fails if its object has changed since.
 */
import type { Id } from '../../model/objects.ts'
import type { Store } from '../../store/store.ts'
import type { ApiRequest } from '../access/caller.ts'
import { callerOf } from '../access/caller.ts'
import type { ResourceContext } from '../access/context.ts'
import { actor, changesOf, changesText, record } from '../access/events.ts'
import type { CsvName } from '../access/table-names.ts'
import { Names } from '../collection/references.ts'
import type { Plan } from '../collection/resource.ts'
import type { ApiDeps } from '../http/deps.ts'
import type { ErrorDetail } from '../http/errors.ts'
import { ApiError } from '../http/errors.ts'
import { apiErrorOf, errorCodeOf } from '../http/failures.ts'
import { Turns } from '../http/pauses.ts'
import { refuseLaterFields } from '../schema/later.ts'
import { bodyFlawFinder } from '../schema/validation.ts'
import { type Column, valueAt } from './columns.ts'
import { lateStore } from './late-store.ts'
import { type Entry, sameAs, TableReader } from './rows.ts'
import { type AnyResource, type Body, type Table, tableOf } from './tables.ts'

export interface ImportContext extends ResourceContext {
  deps: ResourceContext['deps'] & Pick<ApiDeps, 'audit'>
}

export interface ImportOptions {
  separator: string
  /** Checks everything and changes nothing. */
  dryRun: boolean
  /** Limit of changes; `error` makes the error for more. Absent for no limit besides the rows'. */
  limit?: { changes: number; error: (changes: number) => Error }
}

export type ImportResult = 'created' | 'updated' | 'unchanged'
export interface ImportedRow {
  row: number
  result: ImportResult
  /** Name of the object in events. */
  object: string
}

/** Rows planned at the same time: each may have a password to hash, and two hashes are computed at a time. */
const PLANNED_AT_ONCE = 4
/** Events handed to the audit log at once. */
const EVENTS_AT_ONCE = 250

/** The part of a row that is kept until the end, since tables are long. */
interface Planned extends ImportedRow {
  /** Absent if there is nothing to do. */
  plan?: Plan<unknown>
  resource: AnyResource
  /** `body`: fields of a created object; `changes`: text of the event for a changed one. */
  body?: Body
  changes?: string
}

/**
 * @returns the result of each row, in their order
 * @throws ApiError `invalid_csv` with every row that is wrong; nothing was changed then, nor at any other
 * error
 */
export async function importTable(
  context: ImportContext,
  request: ApiRequest,
  name: CsvName,
  source: AsyncIterable<Uint8Array>,
  options: ImportOptions,
): Promise<ImportedRow[]> {
  const late = lateStore(context.deps.store)
  const isForNothing = () => options.dryRun || !reader.problems.isEmpty
  const table = tableOf(name, planningContext(context, late.store, isForNothing))
  const reader = new TableReader(table)
  const planner = new Planner(table, reader, late.store, request)
  const rows = await planner.planAll(reader.entries(source, options.separator))
  if (!reader.problems.isEmpty) throw reader.problems.error()
  const changes = rows.filter(({ plan }) => plan !== undefined)
  if (options.dryRun) return rows
  if (options.limit && options.limit.changes < changes.length) throw options.limit.error(changes.length)
  await announce(context, request, changes)
  try {
    await context.deps.store.transaction(async (store) => {
      late.be(store)
      await carryOut(changes)
      // Plans wipe the secrets that they have stored.
    }, true)
  } catch (error) {
    await announce(context, request, changes, errorCodeOf(error))
    throw error
  }
  return rows
}

/**
 * Returns the context for planning, before there is a transaction.
 * @param isForNothing whether the plans will not be carried out anyway
 */
function planningContext(context: ImportContext, store: Store, isForNothing: () => boolean): ResourceContext {
  const { vault, passwords } = context.deps
  return {
    deps: {
      store,
      clock: context.deps.clock,
      passwords: {
        policy: passwords.policy,
        hash: async (password) => (isForNothing() ? '' : passwords.hash(password)),
      },
      vault: {
        on: (other) => vault.on(other),
        seal: (place, secret) => vault.seal(place, secret),
        // An empty cell keeps the stored secret.
        setCredentials: (id, credentials) => vault.on(store).mergeCredentials(id, credentials),
        setAuthority: (id, key) => vault.on(store).setAuthority(id, key),
      },
    },
  }
}

class Planner {
  readonly #table: Table
  readonly #reader: TableReader
  readonly #store: Store
  readonly #request: ApiRequest
  readonly #flaws = new Map<object, ReturnType<typeof bodyFlawFinder>>()
  /** Number of the row that changes the object of that id. */
  readonly #met = new Map<Id, number>()

  constructor(table: Table, reader: TableReader, store: Store, request: ApiRequest) {
    this.#table = table
    this.#reader = reader
    this.#store = store
    this.#request = request
  }

  async planAll(entries: AsyncIterable<Entry>): Promise<Planned[]> {
    const rows: Planned[] = []
    const turns = new Turns()
    let group: Entry[] = []
    const planGroup = async () => {
      const names = new Names(this.#store, { isForTable: true })
      const planned = await Promise.all(group.map((entry) => this.#tryOne(entry, names)))
      for (const one of planned) if (one) rows.push(one)
      group = []
      await turns.next()
    }
    for await (const entry of entries) {
      group.push(entry)
      if (group.length === PLANNED_AT_ONCE) await planGroup()
    }
    await planGroup()
    return rows
  }

  async #tryOne(entry: Entry, names: Names): Promise<Planned | undefined> {
    try {
      return await this.#planOne(entry, names)
    } catch (error) {
      const cellOf = (field: string) => this.#table.cellOf?.(field, entry.body) ?? field
      this.#reader.problems.addError(error, entry.row, this.#reader.columns, cellOf)
      return undefined
    }
  }

  async #planOne({ row, member, params, body }: Entry, names: Names): Promise<Planned> {
    const { resource } = member
    const request: ApiRequest = { ...this.#request, params }
    await this.#refuseUnknownDevice(params)
    const old = await member.find(request, body)
    if (!old) {
      this.#check(resource, resource.create.schema, body)
      const plan = await resource.create.plan(body, request)
      return { row, result: 'created', object: plan.label ?? resource.label(body), plan, resource, body }
    }
    this.#refuseSecond(old.id, row)
    const before: Body = await resource.show(old, names)
    const object = resource.label(before)
    const given = this.#differing(before, body, resource.secrets)
    if (Object.keys(given).length === 0) return { row, result: 'unchanged', object, resource }
    this.#check(resource, resource.update.schema, given)
    const plan = await resource.update.plan(old, given, request)
    const changes = changesText(changesOf(before, given, resource.secrets))
    return { row, result: 'updated', object, plan, resource, changes }
  }

  #refuseSecond(id: Id, row: number): void {
    const first = this.#met.get(id)
    if (first !== undefined) throw new ApiError('duplicate', [{ message: sameAs(first) }])
    this.#met.set(id, row)
  }

  async #refuseUnknownDevice({ device }: Entry['params']): Promise<void> {
    if (device === undefined || (await this.#store.devices.find(device))) return
    throw new ApiError('unknown_reference', [{ field: 'device', message: `"${device}" does not exist` }])
  }

  #check(resource: AnyResource, schema: AnyResource['create']['schema'], body: Body): void {
    refuseLaterFields(resource.type, body)
    let flawOf = this.#flaws.get(schema)
    if (!flawOf) {
      flawOf = bodyFlawFinder(schema)
      this.#flaws.set(schema, flawOf)
    }
    const flaw = flawOf(body)
    if (flaw) throw flaw
  }

  /** Returns the body's fields that differ from the object's; secrets always count. */
  #differing(before: Body, body: Body, secrets: readonly string[]): Body {
    const differs = ({ path, isOrdered }: Column): boolean => {
      const value = valueAt(body, path)
      return (
        value !== undefined && comparable(value, isOrdered) !== comparable(valueAt(before, path), isOrdered)
      )
    }
    const fields = new Set(this.#table.columns.filter(differs).map(({ path }) => path[0] ?? ''))
    return Object.fromEntries(
      Object.entries(body).filter(([field]) => fields.has(field) || secrets.includes(field)),
    )
  }
}

/** Ignores the order of a list, unless it is an ordered one. */
function comparable(value: unknown, isOrdered = false): string {
  return JSON.stringify(Array.isArray(value) && !isOrdered ? value.toSorted() : (value ?? null))
}

/** Audits the changes: that they are about to be made, or, with the reason, that they failed. */
async function announce(
  { deps }: ImportContext,
  request: ApiRequest,
  changes: readonly Planned[],
  reason?: string,
): Promise<void> {
  const who = actor(callerOf(request))
  const failure = reason === undefined ? {} : { result: 'failure', reason }
  for (let from = 0; from < changes.length; from += EVENTS_AT_ONCE) {
    const group = changes.slice(from, from + EVENTS_AT_ONCE)
    await Promise.all(
      group.flatMap(({ resource, result, object, plan, body, changes }) => {
        const text = changes ?? changesText(changesOf({}, body ?? {}, resource.secrets))
        const fields = {
          ...who,
          method: 'import',
          object_type: resource.type,
          object,
          changes: text,
          ...failure,
        }
        const code = result === 'created' ? 'object.create' : 'object.update'
        const more = reason === undefined ? (plan?.events ?? []) : []
        return [
          record(deps.audit, request, code, fields),
          ...more.map((event) => record(deps.audit, request, event.code, { ...who, ...event.fields })),
        ]
      }),
    )
  }
}

async function carryOut(changes: readonly Planned[]): Promise<void> {
  const turns = new Turns()
  for (const { row, plan } of changes) {
    try {
      await plan?.()
    } catch (error) {
      throw atRow(error, row)
    }
    await turns.next()
  }
}

/** Adds the row to an error caused by a change made elsewhere since the check. */
function atRow(error: unknown, row: number): unknown {
  const known = apiErrorOf(error)
  if (known.status >= 500) return error
  const details: ErrorDetail[] = known.details.length > 0 ? known.details : [{ message: 'changed meanwhile' }]
  return new ApiError(
    known.code,
    details.map((detail) => ({ row, ...detail })),
  )
}
