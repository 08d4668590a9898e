import { afterEach, beforeEach, expect, test } from 'vitest'
import type { RecordingState, SessionRecord } from '../../src/model/objects.ts'
import { NEVER } from '../../src/store/uploads.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let database: TemporaryStore
beforeEach(async () => {
  database = await temporaryStore()
})
afterEach(() => database.remove())

const uploads = () => database.store.uploads

async function session(id: string, state: RecordingState | undefined, digest = 'ab', end = 2): Promise<void> {
  const row: SessionRecord = {
    id,
    begin: 1,
    user: 'ops1',
    sourceIp: '192.0.2.1',
    protocol: 'SSH',
    subprotocols: [],
    account: 'root',
    domain: 'local',
    device: 'srv1',
    service: 'ssh',
    targetHost: '192.0.2.2',
    authorization: 'ops',
    isRecorded: state !== undefined,
    bytesIn: 0,
    bytesOut: 0,
    ...(end > 0 && { end }),
    ...(state && { recording: { state, size: 1, frames: 1, digest } }),
  }
  await database.store.sessions.create(row)
}

test('sessions that ended with a recording are adopted, once', async () => {
  for (const state of ['sealed', 'recovered', 'failed', 'deleted', 'missing', 'open'] as const)
    await session(state, state)
  await session('unrecorded', undefined)
  await session('never-begun', 'failed', '')
  await session('running', 'sealed', 'ab', 0)
  await uploads().add('sealed', 1, 7)
  await uploads().update('sealed', 'waiting', { state: 'stored', due: NEVER })
  expect(await uploads().adopt(5)).toBe(2)
  expect(await uploads().adopt(5)).toBe(0)
  expect((await uploads().due(5, 10, [])).map(({ session }) => session).sort()).toEqual([
    'failed',
    'recovered',
  ])
  expect(await uploads().find('sealed')).toMatchObject({ state: 'stored', begin: 1 })
  expect(await uploads().waiting()).toBe(2)
})

test('the longest due comes first, without those that somebody is at', async () => {
  for (const [id, due] of [
    ['b', 20],
    ['a', 10],
    ['c', 30],
    ['d', 50],
  ] as const)
    await uploads().add(id, 1, due)
  expect((await uploads().due(40, 10, ['a'])).map(({ session }) => session)).toEqual(['b', 'c'])
  expect((await uploads().due(40, 1, [])).map(({ session }) => session)).toEqual(['a'])
})

test('a change holds only in the state that it was decided in: a deletion meanwhile stands', async () => {
  await uploads().add('a', 1, 10)
  await uploads().update('a', 'waiting', { upload: 'u', failures: 3 })
  await uploads().forget('a', 1, 12)
  await uploads().update('a', 'waiting', { state: 'stored', upload: undefined })
  expect(await uploads().find('a')).toEqual({
    session: 'a',
    begin: 1,
    state: 'deleting',
    due: 12,
    failures: 0,
    upload: 'u',
  })
  await uploads().forget('unknown', 4, 12)
  expect(await uploads().find('unknown')).toMatchObject({ state: 'deleting', begin: 4 })
  await uploads().remove('a')
  expect(await uploads().find('a')).toBeUndefined()
})

test('another keep_local moves the time at which local files go', async () => {
  await uploads().add('a', 1, 10)
  await uploads().update('a', 'waiting', { state: 'stored', stored: 100, due: NEVER })
  await uploads().keepLocal(50)
  expect(await uploads().find('a')).toMatchObject({ due: 150 })
  await uploads().keepLocal(undefined)
  expect(await uploads().find('a')).toMatchObject({ due: NEVER })
})
