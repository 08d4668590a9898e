/** Deletion of recordings: deleted ones, kept ones, and the results of verify for the gaps. */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import { rawPublicKey } from '../../recordings/container/format/signature.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { STORED_NAME, storeAway } from '../../recordings/storage/stored-away.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import type { SessionRecord } from '../../src/model/objects.ts'
import type { DeleteRequest } from '../../src/recording-service/deletion.ts'
import { crossCheck, Evidence, gatherEvidence, listed } from '../../src/recording-service/evidence.ts'
import { Retention } from '../../src/recording-service/retention.ts'
import { SpaceWatch } from '../../src/recording-service/space.ts'
import { BEGIN, removeRoots } from '../recordings/support.ts'
import { DAY, idOf, type Setting, startSetting } from './setting.ts'

let here: Setting
beforeEach(async () => {
  here = await startSetting()
})
afterEach(() => here.close())
afterAll(removeRoots)

const request = (change: Partial<DeleteRequest> = {}): DeleteRequest => ({
  method: 'request',
  reason: 'asked for',
  tell: (fields) => here.audit.record('recording.deleted', { user: 'admin', ...fields }),
  ...change,
})
/** Returns the faults found by `audit verify`: the log's own fault, and those of recordings. */
async function verified(): Promise<string[]> {
  const entries = await listed(here.root)
  const evidence = new Evidence()
  const trusted = [rawPublicKey(here.key)]
  const { fault } = await verifyAudit(here.store.audit, { trusted, onEvent: (event) => evidence.add(event) })
  const faults = await crossCheck(here.root, entries, evidence)
  return [...(fault ? [fault.code] : []), ...faults.map(({ code, session }) => `${code} ${session}`)]
}
const isThere = async (number: number) => (await findRecording(here.root, idOf(number))) !== undefined
const stateOf = async (number: number) => (await here.store.sessions.find(idOf(number)))?.recording?.state

describe('a deletion', () => {
  test('leaves a signed tombstone, no file, the session, and a hole with its reason', async () => {
    const { recording } = await here.session(1)
    await here.session(2)
    expect(await here.deletion.remove(idOf(1), request())).toBe('deleted')
    expect(await isThere(1)).toBe(false)
    expect(readdirSync(join(here.root, 'deleted'))).toEqual([])
    expect(await stateOf(1)).toBe('deleted')
    const { digest, size } = recording!
    expect(await here.events('recording.deleted')).toMatchObject([
      { fields: { session: idOf(1), user: 'admin', method: 'request', reason: 'asked for', digest, size } },
    ])
    expect((await here.store.audit.last())?.code).toBe('audit.checkpoint')
    expect(await verified()).toEqual([])
    expect((await gatherEvidence(here.store.audit, idOf(1))).sessions.get(idOf(1))?.deleted).toMatch(
      /^deleted 2026-\d\d-\d\dT.*Z by admin: asked for$/,
    )
    expect(await here.deletion.remove(idOf(1), request())).toBe('not_found')
  })

  test('does not happen while the session runs, is on hold, or the tombstone cannot be written', async () => {
    const recording = { state: 'open' as const, size: 0, frames: 0, digest: '' }
    await here.session(1, { recording })
    await here.session(2)
    await here.session(3)
    const hold = { by: 'auditor', since: BEGIN, reason: 'case 7' }
    await here.deletion.hold(idOf(2), hold, async () => {})
    expect(await here.deletion.remove(idOf(1), request())).toBe('still_recording')
    expect(await here.deletion.remove(idOf(2), request())).toBe('on_hold')
    const broken = request({ tell: () => Promise.reject(new Error('audit_unavailable')) })
    await expect(here.deletion.remove(idOf(3), broken)).rejects.toThrow('audit_unavailable')
    expect(await Promise.all([isThere(1), isThere(2), isThere(3)])).toEqual([true, true, true])
    expect(await here.deletion.remove(idOf(4), request())).toBe('not_found')
    const wish = { by: 'auditor', userId: 'a', since: BEGIN, reason: 'closed' }
    expect(await here.deletion.release(idOf(2), wish, false, async () => {})).toBe('released')
    expect(await here.deletion.remove(idOf(2), request())).toBe('deleted')
  })

  test('of a hold is no key’s to release where it takes two persons, though it was set just before', async () => {
    await here.session(1)
    here.deletion.holdRelease = 'two'
    const hold = { by: 'auditor', since: BEGIN, reason: 'case 7' }
    const wish = { by: 'key:k', userId: '', since: BEGIN, reason: 'closed' }
    const told: string[] = []
    const release = (isPerson: boolean) =>
      here.deletion.release(idOf(1), wish, isPerson, async (what) => void told.push(what))
    expect(await release(false)).toBe('released')
    const holding = here.deletion.hold(idOf(1), hold, async () => {})
    expect(await release(false)).toBe('person_required')
    await holding
    expect(told).toEqual([])
    expect((await here.store.sessions.find(idOf(1)))?.legalHold).toEqual(hold)
    expect(await release(true)).toBe('asked')
    expect(await release(false)).toBe('person_required')
    expect(told).toEqual(['asked'])
  })

  test('and a hold come one after the other, whichever is first', async () => {
    const { promise: written, resolve: write } = Promise.withResolvers<void>()
    for (const number of [1, 2]) await here.session(number)
    const hold = { by: 'auditor', since: BEGIN, reason: 'case 7' }
    const done: string[] = []
    const removing = here.deletion.remove(idOf(1), request({ tell: () => written }))
    const holding = here.deletion.hold(idOf(1), hold, async () => void done.push('held'))
    const heldFirst = here.deletion.hold(idOf(2), hold, async () => {})
    const refused = here.deletion.remove(idOf(2), request())
    // Turns of the event loop in which the second call could have run first.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(done).toEqual([])
    write()
    expect(await removing).toBe('deleted')
    await holding
    await heldFirst
    expect(await refused).toBe('on_hold')
    expect(await isThere(2)).toBe(true)
  })

  test('that a crash ended is finished by the next start, at whatever step it was', async () => {
    for (const number of [1, 2, 3]) await here.session(number)
    // After the tombstone: all files exist, and can be deleted again.
    const { digest } = (await here.store.sessions.find(idOf(1)))!.recording!
    await here.audit.record('recording.deleted', { session: idOf(1), digest, reason: 'old' })
    expect(await verified()).toEqual([])
    expect(await here.deletion.remove(idOf(1), request())).toBe('deleted')
    // After the folder was moved aside, complete or half removed.
    for (const [number, rest] of [
      [2, true],
      [3, false],
    ] as const) {
      const { directory, digest: sealed } = (await findRecording(here.root, idOf(number)))!
      await here.audit.record('recording.deleted', { session: idOf(number), digest: sealed!, reason: 'old' })
      mkdirSync(join(here.root, 'deleted'), { recursive: true })
      renameSync(directory, join(here.root, 'deleted', idOf(number)))
      if (!rest) rmSync(join(here.root, 'deleted', idOf(number), FILE_NAME))
    }
    expect(await stateOf(2)).toBe('sealed')
    await here.deletion.finish()
    expect([await stateOf(2), await stateOf(3)]).toEqual(['deleted', 'deleted'])
    expect(readdirSync(join(here.root, 'deleted'))).toEqual([])
    expect(await verified()).toEqual([])
  })

  test('whose disk fails is told, and the tombstone does not stand', async () => {
    await here.session(1)
    writeFileSync(join(here.root, 'deleted'), 'in the way')
    await expect(here.deletion.remove(idOf(1), request())).rejects.toThrow('EEXIST')
    expect((await here.events('recording.deleted')).map(({ fields }) => fields)).toMatchObject([
      { digest: expect.any(String) },
      { result: 'failure' },
    ])
    const { directory } = (await findRecording(here.root, idOf(1)))!
    rmSync(directory, { recursive: true })
    expect(await verified()).toEqual([`missing_session ${idOf(1)}`])
  })
})

describe('verify tells a hole with a reason from one without', () => {
  test('an event that the column for its session hides from whoever asks for that session', async () => {
    await here.session(1)
    expect((await gatherEvidence(here.store.audit, idOf(1))).sessions.get(idOf(1))?.closed).toBeDefined()
    const stranger = new DatabaseSync(here.path)
    stranger.exec("update audit set session = null where code = 'recording.sealed'")
    stranger.close()
    expect((await gatherEvidence(here.store.audit, idOf(1))).sessions.get(idOf(1))?.closed).toBeUndefined()
    expect(await verified()).toEqual(['bad_event'])
  })

  test('a recording that was removed by hand, replaced, or put there', async () => {
    for (const number of [1, 2, 3]) await here.session(number)
    const directoryOf = async (number: number) => (await findRecording(here.root, idOf(number)))!.directory
    rmSync(await directoryOf(1), { recursive: true })
    const second = await directoryOf(2)
    rmSync(second, { recursive: true })
    renameSync(await directoryOf(3), second)
    expect(await verified()).toEqual([
      `missing_session ${idOf(1)}`,
      `replaced_file ${idOf(2)}`,
      `missing_session ${idOf(3)}`,
    ])
    mkdirSync(join(second, '..', 'stranger'))
    writeFileSync(join(second, '..', 'stranger', FILE_NAME), 'x'.repeat(400))
    expect(await verified()).toContain('unknown_session stranger')
  })

  test('no tombstone is written over a hole, nor counts for a file that was put in its place', async () => {
    await here.session(1)
    await here.session(2)
    await here.session(3)
    rmSync((await findRecording(here.root, idOf(1)))!.directory, { recursive: true })
    expect(await here.deletion.remove(idOf(1), request())).toBe('not_found')
    expect(await stateOf(1)).toBe('missing')
    const { directory } = (await findRecording(here.root, idOf(2)))!
    rmSync(directory, { recursive: true })
    renameSync((await findRecording(here.root, idOf(3)))!.directory, directory)
    await here.deletion.remove(idOf(2), request())
    expect(await verified()).toEqual([1, 2, 3].map((number) => `missing_session ${idOf(number)}`))
  })
})

test('a recording that was away for a while, as with a volume that was not there, can be deleted again', async () => {
  await here.session(1)
  const { directory } = (await findRecording(here.root, idOf(1)))!
  renameSync(directory, `${here.root}-away`)
  expect(await here.deletion.remove(idOf(1), request())).toBe('not_found')
  const told = await here.events('recording.deleted')
  expect(await here.deletion.remove(idOf(1), request())).toBe('not_found')
  expect(await here.events('recording.deleted')).toEqual(told)
  renameSync(`${here.root}-away`, directory)
  expect(await here.deletion.remove(idOf(1), request())).toBe('deleted')
  expect(await verified()).toEqual([])
})

describe('a note that the object store has a recording', () => {
  test('counts when the audit log knows that this was read back from there', async () => {
    await here.session(1)
    const entry = (await findRecording(here.root, idOf(1)))!
    await storeAway(entry, { key: 'x/session.rec', sha256: 'aa' })
    expect(await verified()).toEqual([`missing_session ${idOf(1)}`])
    const stored = { session: idOf(1), object: 'x/session.rec', sha256: 'aa' }
    await here.audit.record('recording.stored', { ...stored, result: 'failure' })
    expect(await verified()).toEqual([`missing_session ${idOf(1)}`])
    await here.audit.record('recording.stored', { ...stored, sha256: 'bb', result: 'success' })
    expect(await verified()).toEqual([`missing_session ${idOf(1)}`])
    await here.audit.record('recording.stored', { ...stored, result: 'success' })
    expect(await verified()).toEqual([])
  })

  test.each(['null', '[]', '{}', '{"state":"open"}', '"x', '{"size":-1,"stored":{"key":1}}'])(
    'keeps no other from being verified when it is %s',
    async (text) => {
      await here.session(1)
      await here.session(2)
      const { directory } = (await findRecording(here.root, idOf(1)))!
      rmSync(join(directory, FILE_NAME))
      writeFileSync(join(directory, STORED_NAME), text)
      expect(await findRecording(here.root, idOf(1))).toMatchObject({ state: 'empty' })
      expect(await verified()).toEqual([`missing_session ${idOf(1)}`])
    },
  )
})

describe('retention', () => {
  let errors: string[]
  let monotonic: number
  const retention = (change: { keepDays?: number; maxSize?: number }) => {
    errors = []
    monotonic = 0
    return new Retention({
      sessions: here.store.sessions,
      audit: here.audit,
      deletion: here.deletion,
      limits: { keepDays: 0, maxSize: 0, ...change },
      now: () => here.clock.now,
      monotonic: () => monotonic,
      onError: ({ message }) => errors.push(message),
    })
  }
  const left = async () => (await listed(here.root)).map(({ session }) => session)
  const hold = (session: SessionRecord) =>
    here.deletion.hold(session.id, { by: 'auditor', since: BEGIN, reason: 'case 7' }, async () => {})

  test('deletes what is too old, but what is on hold', async () => {
    for (const number of [1, 2, 3, 4]) await here.session(number)
    await hold((await here.store.sessions.find(idOf(2)))!)
    here.clock.now = BEGIN + 34 * DAY
    await retention({ keepDays: 30 }).enforce()
    expect(await left()).toEqual([2, 4].map(idOf))
    expect(await here.events('recording.deleted')).toMatchObject([
      { fields: { session: idOf(1), method: 'age', reason: 'older than 30 days' } },
      { fields: { session: idOf(3), method: 'age' } },
    ])
    expect(await verified()).toEqual([])
  })

  test('deletes the oldest of too many bytes, but what is on hold', async () => {
    const sessions = []
    for (const number of [1, 2, 3, 4]) sessions.push(await here.session(number))
    await hold(sessions[0]!)
    here.clock.now = BEGIN + 34 * DAY
    const sizes = sessions.map(({ recording }) => recording!.size)
    await retention({ maxSize: sizes[0]! + sizes[3]! }).enforce()
    expect(await left()).toEqual([1, 4].map(idOf))
    await retention({ maxSize: 1 }).enforce()
    expect(await left()).toEqual([idOf(1)])
    expect(await here.store.sessions.recordedBytes()).toBe(sizes[0])
  })

  test('sums up many sessions with turns for others in between', async () => {
    const { recording } = await here.session(1)
    const database = new DatabaseSync(here.path)
    const columns = database
      .prepare(
        "select name from pragma_table_info('sessions') where name not in ('id', 'recording') and name not like 'recording\\_%' escape '\\'",
      )
      .all()
      .map(({ name }) => String(name))
      .join(', ')
    database.exec(
      `with recursive n(i) as (select 1 union all select i + 1 from n where i < 9000)
       insert into sessions (id, recording, recording_state, recording_size, recording_digest, ${columns})
       select 'S' || i, case i % 4 when 0 then null else recording end,
         case i % 4 when 0 then null when 1 then 'deleted' else recording_state end,
         case i % 4 when 0 then null when 1 then recording_size else 10 end,
         case i % 4 when 0 then null else recording_digest end, ${columns.replace(/(\w+)/g, 'sessions.$1')}
       from n, sessions where sessions.id = '${idOf(1)}'`,
    )
    database.close()
    let turns = 0
    let isOver = false
    const turn = () => {
      turns++
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    const bytes = await here.store.sessions.recordedBytes()
    isOver = true
    expect(bytes).toBe(recording!.size + 4500 * 10)
    expect(turns).toBeGreaterThan(2)
  })

  test('deletes nothing where nothing is configured, and nothing by a clock that has jumped', async () => {
    await here.session(1)
    here.clock.now = BEGIN + 9999 * DAY
    await retention({}).enforce()
    here.clock.now = BEGIN + DAY
    const watched = retention({ keepDays: 30 })
    here.clock.now = BEGIN + 9999 * DAY
    monotonic = 600_000
    await watched.enforce()
    expect(await left()).toEqual([idOf(1)])
    expect(errors).toEqual([expect.stringContaining('the clock has jumped')])
  })

  test('goes on by size when the clock has jumped, whatever it says', async () => {
    await here.session(1)
    const { recording } = await here.session(2)
    const watched = retention({ keepDays: 30, maxSize: recording!.size })
    here.clock.now = BEGIN - 9999 * DAY
    await watched.enforce()
    expect(await left()).toEqual([idOf(2)])
    expect(errors).toEqual([expect.stringContaining('the clock has jumped')])
  })

  test.each([{ keepDays: 30 }, { maxSize: 1 }])('stops at once when %j no longer holds', async (before) => {
    for (const number of [1, 2, 3]) await here.session(number)
    here.clock.now = BEGIN + 99 * DAY
    const changed = retention(before)
    const remove = here.deletion.remove.bind(here.deletion)
    const removing = vi.spyOn(here.deletion, 'remove').mockImplementation((session, request) => {
      changed.limits = { keepDays: 365, maxSize: 0 }
      return remove(session, request)
    })
    await changed.enforce()
    await changed.enforce()
    removing.mockRestore()
    expect(await left()).toEqual([2, 3].map(idOf))
  })

  test('goes on behind one that cannot be deleted', async () => {
    for (const number of [1, 2]) await here.session(number)
    here.clock.now = BEGIN + 99 * DAY
    // The first one's place aside is taken by a folder that is not empty.
    mkdirSync(join(here.root, 'deleted', idOf(1), 'x'), { recursive: true })
    await retention({ keepDays: 30 }).enforce()
    expect(errors).toEqual([expect.stringMatching('ENOTEMPTY')])
    expect(await left()).toEqual([idOf(1)])
  })
})

describe('the free space', () => {
  test('is told once when it comes below the alarm, and again only after there was room', async () => {
    let free = 300
    const watch = new SpaceWatch(
      { folder: here.root, alarm: 200, minimum: 100 },
      here.audit,
      async () => free,
    )
    for (const now of [300, 199, 150, 205, 190, 230, 120]) {
      free = now
      await watch.look()
      expect(watch.isFull).toBe(false)
    }
    free = 99
    await watch.look()
    expect(watch.isFull).toBe(true)
    expect((await here.events('recording.space')).map(({ fields }) => fields)).toMatchObject([
      { object: here.root, size: 199 },
      { size: 120 },
    ])
  })
})
