/** Places of the tests about copies: files of SQLite in a folder, and databases of a real server. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { verifyAudit } from '../../../src/audit/verify.ts'
import type { DatabasePlace } from '../../../src/model/database.ts'
import { type CopyOptions, type CopyResult, copyStore, type Progress } from '../../../src/store/copy/copy.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { type TestDatabase, testDatabase } from '../../peers/databases.ts'
import { newUser } from '../fixture.ts'
import { fill, TEXTS } from './filled.ts'

let folder: string
/** A filled store, made once for each test file. */
let model: { file: string } | undefined
const databases: TestDatabase[] = []
const stores: Store[] = []

/** Gives each test of a file a folder and databases of its own. */
export function usePlaces(): void {
  let models: string
  beforeAll(async () => {
    models = mkdtempSync(join(tmpdir(), 'sallyport-copy-'))
    const place = { file: join(models, 'model.db') }
    await filled(place)
    model = place
  })
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-copy-'))
  })
  afterEach(async () => {
    await closeAll()
    for (const database of databases.splice(0)) await database.drop()
    rmSync(folder, { recursive: true, force: true })
  })
  afterAll(() => {
    model = undefined
    rmSync(models, { recursive: true, force: true })
  })
}

export const pathOf = (name: string): string => join(folder, name)

export const closeAll = () => Promise.all(stores.splice(0).map((store) => store.close()))

export const file = (name: string): { file: string } => ({ file: join(folder, name) })

/** Makes a database; `isEmpty`: without the schema. */
export async function server(isEmpty = false): Promise<TestDatabase & { postgres: TestDatabase['place'] }> {
  const database = await testDatabase({ isEmpty })
  databases.push(database)
  return { ...database, postgres: database.place }
}

export async function open(place: DatabasePlace): Promise<Store> {
  const store = await openStore('file' in place ? { path: place.file } : { postgres: place.postgres, folder })
  stores.push(store)
  // Without a statement the store would not close its file.
  await store.changes.kept()
  return store
}

/** Fills a new store; `more` adds to it. */
export async function filled(place: DatabasePlace, more?: (store: Store) => Promise<void>): Promise<void> {
  if (model && 'file' in place) copyFileSync(model.file, place.file)
  const store = await open(place)
  if (!model || !('file' in place)) await fill(store)
  await more?.(store)
  await closeAll()
}

export const BY = { actor: { user: 'local:test', uid: 1 }, now: () => 1000 }

export const copy = (
  from: DatabasePlace,
  to: DatabasePlace,
  more: Partial<CopyOptions> = {},
): Promise<CopyResult> => copyStore({ from, to, ...BY, ...more })

/** Opens a copy as a broker does, and looks at what it is about to work with. */
export async function requireWhole(place: DatabasePlace, before: CopyResult): Promise<void> {
  const store = await open(place)
  const users = (await store.users.list({ limit: -1, offset: 0 })).items
  expect(users.filter(({ userName }) => /^user\d/.test(userName)).map(({ email }) => email)).toEqual(TEXTS)
  const last = await store.audit.last()
  expect(JSON.parse(last!.json)).toMatchObject({
    code: 'store.copy',
    fields: { user: 'local:test', digest: before.audit.head },
  })
  expect(await verifyAudit(store.audit)).toMatchObject({ rows: before.audit.rows + 1 })
  const kept = await store.changes.kept()
  await store.users.create(newUser('later'))
  // Not one that a removed change had, and none of the copy's own.
  expect((await store.changes.after(kept.last, 10)).map(({ kind }) => kind)).toEqual(['user'])
  await store.users.remove((await store.users.find('later'))!.id)
  await closeAll()
}

export const refusal = (place: DatabasePlace) =>
  open(place).then(
    () => 'opened',
    (error: Error) => error.message,
  )

/** Returns a function for `onProgress` that does the work at the first report of a step. */
export function once(
  step: Progress['step'],
  work: () => Promise<unknown>,
): (progress: Progress) => Promise<void> {
  let isDone = false
  return async (progress) => {
    if (isDone || progress.step !== step) return
    isDone = true
    await work()
  }
}
