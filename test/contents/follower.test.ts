/**
 * The index follows the audit log: each event is added once, despite interruptions, in a thread that may die.
 */
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { ContentDatabase } from '../../src/contents/database.ts'
import { type EventIndex, Follower } from '../../src/contents/follower.ts'
import { ContentThread } from '../../src/contents/thread.ts'
import { idOf, type Setting, startSetting } from '../recording-service/setting.ts'
import { removeRoots } from '../recordings/support.ts'
import { asked, makeFolder, removeFolders } from './support.ts'

let here: Setting
let path: string
let thread: ContentThread
const errors: string[] = []
beforeEach(async () => {
  here = await startSetting()
  path = join(makeFolder(), 'search.db')
  thread = new ContentThread({ path, mode: 'full' })
  errors.length = 0
})
afterEach(async () => {
  await thread.close()
  await here.close()
})
afterAll(() => {
  removeRoots()
  removeFolders()
})

const follower = (index: EventIndex = thread) =>
  new Follower({ audit: here.store.audit, index, onError: ({ message }) => errors.push(message) })
const commands = async (number: number, word: string) =>
  (await thread.matches(idOf(number), [asked('command', word)])).map(({ excerpt }) => excerpt)

test('commands and files of running sessions, and nothing else', async () => {
  await here.audit.record('session.open', { session: idOf(1) })
  here.clock.now += 2500
  await here.audit.record('command', { session: idOf(1), object: 'cat /etc/shadow' })
  await here.audit.record('file.transfer', { session: idOf(1), path: '/srv/shadow', direction: 'up' })
  await here.audit.record('file.denied', { session: idOf(1), path: '/srv/shadow.exe', reason: 'rule' })
  await here.audit.record('command', { session: idOf(1), reason: '7 command lines were left out' })
  await here.audit.record('session.kill', { session: idOf(1), reason: 'shadow' })
  await here.audit.record('auth.failure', { user: 'shadow' })
  await follower().follow()
  const tests = (['command', 'file', 'output'] as const).map((field) => asked(field, 'shadow'))
  expect(
    (await thread.matches(idOf(1), tests)).map(({ at, field, excerpt }) => [at, field, excerpt]),
  ).toEqual([
    [2500, 'command', 'cat /etc/shadow'],
    [2500, 'file', '/srv/shadow'],
    [2500, 'file', '/srv/shadow.exe'],
  ])
})

test('each once, though it is broken off, begun anew, and two of them run', async () => {
  await here.audit.record('session.open', { session: idOf(1) })
  for (let i = 0; i < 1200; i++) await here.audit.record('command', { session: idOf(1), object: `run ${i}` })
  let calls = 0
  const breaking: EventIndex = {
    sequence: () => thread.sequence(),
    addEvents: async (events, sequence) => {
      calls++
      await thread.addEvents(events, sequence)
      if (calls === 1) throw new Error('broken off after the commit')
    },
  }
  const first = follower(breaking)
  await first.follow()
  expect(errors).toEqual(['broken off after the commit'])
  await Promise.all([first.follow(), first.follow()])
  await follower().follow()
  expect(await commands(1, 'run')).toHaveLength(1000)
  const database = new ContentDatabase(path, 'full')
  expect(database.matches(idOf(1), [asked('command', '700')])).toHaveLength(1)
  expect(database.sequence()).toBeGreaterThan(1200)
  database.close()
})

test('a tombstone empties the index of the session, and a deletion that failed lets it in again', async () => {
  const { recording } = await here.session(1)
  await here.audit.record('command', { session: idOf(1), object: 'whoami' })
  const subject = follower()
  await subject.follow()
  expect(await commands(1, 'whoami')).toEqual(['whoami'])
  await here.audit.record('recording.deleted', { session: idOf(1), reason: 'old' })
  await subject.follow()
  expect(await commands(1, 'whoami')).toEqual([])
  expect(await thread.has(idOf(1), recording!.digest)).toBe(true)
  await here.audit.record('recording.deleted', { session: idOf(1), result: 'failure', reason: 'disk' })
  await subject.follow()
  expect(await thread.has(idOf(1), recording!.digest)).toBe(false)
})

test('a thread that cannot open its file fails who asks, and is started again', async () => {
  const broken = new ContentThread({ path: join(path, 'no-folder', 'search.db'), mode: 'full' })
  await expect(broken.sequence()).rejects.toThrow('ENOENT')
  await expect(broken.sequence()).rejects.toThrow('ENOENT')
  await broken.close()
  await expect(broken.sequence()).rejects.toThrow('closed')
})
