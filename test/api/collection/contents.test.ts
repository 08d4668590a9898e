/** Searches by the content of sessions: results, places, permissions, and events. */
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { RecordingError } from '../../../recordings/container/format/error.ts'
import { type Contents, ContentsBusyError } from '../../../src/contents/contents.ts'
import { ContentDatabase } from '../../../src/contents/database.ts'
import { ContentThread } from '../../../src/contents/thread.ts'
import { PROFILES } from '../../../src/model/objects.ts'
import { FACTORY_PROFILES, reaches } from '../../../src/model/profiles.ts'
import {
  BEGIN,
  HOUR,
  idOf,
  lineOf,
  makeFolder,
  output,
  recorded,
  removeFolders,
} from '../../contents/support.ts'
import { type Harness, startHarness } from '../harness.ts'

const path = `${makeFolder()}/search.db`
const thread = new ContentThread({ path, mode: 'full' })
const contents: Contents = { index: thread, mode: 'full', isSealed: false }
const sealed = new Set<string>()
let h: Harness
let cookie: string

beforeAll(async () => {
  const database = new ContentDatabase(path, 'full')
  database.addEvents(lineOf(1, 'command', 'systemctl stop db', 2), 1)
  database.addEvents(lineOf(2, 'file', '/srv/in/salaries.ods'), 2)
  database.putRecording(
    recorded(1, { output: output('root@srv1:~# systemctl stop db', 'Failed: <b>no</b>') }),
  )
  database.putRecording(recorded(3, { output: output('Failed again'), isPartial: true }))
  database.close()
  h = await startHarness({
    contents,
    recordings: {
      open: async (id) => {
        if (sealed.has(id)) throw new RecordingError('wrong_key', 'not among the recipients')
        return Readable.from(['x'])
      },
      close: async () => {},
    },
  })
  for (const number of [1, 2, 3, 4]) {
    await h.store.sessions.create({
      id: idOf(number),
      begin: BEGIN + number * HOUR,
      user: number === 2 ? 'ops2' : 'ops1',
      sourceIp: '192.0.2.7',
      protocol: 'SSH',
      subprotocols: [],
      account: 'root',
      domain: 'local',
      device: 'srv1',
      service: 'ssh',
      targetHost: '192.0.2.1',
      authorization: 'a:b',
      isRecorded: true,
      bytesIn: 0,
      bytesOut: 0,
    })
  }
  cookie = await h.signIn()
})
afterEach(() => Object.assign(contents, { index: thread, mode: 'full', isSealed: false }))
afterAll(async () => {
  await h.close()
  await thread.close()
  removeFolders()
})

const get = (path: string, parameters: Record<string, string>, as = cookie) =>
  h.call('GET', `${path}?${new URLSearchParams(parameters)}`, { cookie: as })
const found = async (q: string) => {
  const answer = await get('/sessions', { q, limit: '-1' })
  expect(answer.status, answer.text).toBe(200)
  expect(Number(answer.headers['x-total-count'])).toBe(answer.body.length)
  return answer.body.map(({ id }: { id: string }) => Number(id.slice(4)))
}

describe('GET /sessions', () => {
  it.each([
    ['command~"stop db"', [1]],
    ['command~sys*', [1]],
    ['file~salaries', [2]],
    ['output~failed', [3, 1]],
    ['output~failed && output~stop', [1]],
    ['output~failed && user=ops1 && begin~2031-06-01T03', [3]],
    ['output~failed && begin~2031-07', []],
    ['(command~stop || file~/srv/in*) && user=ops2', [2]],
    [`output~again || user=\${user} || file~salaries`, [3, 2]],
    ['command~nothing', []],
    ['device=srv1', [4, 3, 2, 1]],
  ])('%s', async (q, numbers) => {
    expect(await found(q)).toEqual(numbers)
  })

  it('pages and sorts what was found', async () => {
    const answer = await get('/sessions', { q: 'output~failed', sort: 'begin', limit: '1', offset: '1' })
    expect(answer.body.map(({ id }: { id: string }) => id)).toEqual([idOf(3)])
    expect(answer.headers['x-total-count']).toBe('2')
  })

  it.each([
    ['command=x', 'invalid_search', 7],
    ['user=a && output~"--"', 'invalid_search', 17],
    ['file~a*', 'invalid_search', 5],
    ['commands~x', 'unknown_field', 0],
  ])('refuses %s', async (q, error, position) => {
    const answer = await get('/sessions', { q })
    expect([answer.status, answer.body.error]).toEqual([400, error])
    expect(answer.body.details[0].position).toBe(position)
  })

  it('answers anything that can be written as a value, and only what has the words', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 40 }), async (text) => {
        const value = `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
        const answer = await get('/sessions', { q: `output~${value}` })
        expect([200, 400], answer.text).toContain(answer.status)
        if (answer.status === 400) expect(answer.body.error).toBe('invalid_search')
      }),
      { numRuns: 200 },
    )
  })

  it('refuses what is too much, or too many at once', async () => {
    const index = (answer: () => never | 'too_many' | 'too_slow') =>
      Object.assign(contents, { index: { ...thread, sessionsWith: async () => answer() } })
    index(() => 'too_many')
    const answer = await get('/sessions', { q: 'output~failed' })
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_search'])
    expect(answer.body.details[0].message).toContain('expected a narrower search')
    index(() => 'too_slow')
    expect((await get('/sessions', { q: 'output~failed' })).body.details[0].message).toContain('in time')
    index(() => {
      throw new ContentsBusyError('too many')
    })
    expect((await get('/sessions', { q: 'output~failed' })).status).toBe(503)
  })
})

describe('GET /sessions/ID/matches', () => {
  const matches = (number: number, q: string, more = {}) =>
    get(`/sessions/${idOf(number)}/matches`, { q, ...more })

  it('tells the second, the channel and the line', async () => {
    const answer = await matches(1, 'user=whoever && (output~failed || command~stop || output~stop)')
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual([
      { time: 0, channel: 1, field: 'output', excerpt: 'root@srv1:~# systemctl stop db' },
      { time: 1, channel: 1, field: 'output', excerpt: 'Failed: <b>no</b>' },
      { time: 2, channel: null, field: 'command', excerpt: 'systemctl stop db' },
    ])
    expect(answer.headers).toMatchObject({ 'x-total-count': '3', 'x-indexed': 'full' })
    const page = await matches(1, 'output~failed || command~stop', { limit: '1', offset: '1' })
    expect(page.body.map(({ field }: { field: string }) => field)).toEqual(['command'])
  })

  it('says what is in the index', async () => {
    expect((await matches(2, 'output~x')).headers['x-indexed']).toBe('events')
    expect((await matches(3, 'output~x')).headers['x-indexed']).toBe('partial')
  })

  it('takes a search of content only, of a session that there is', async () => {
    expect((await matches(1, 'user=ops1')).body.error).toBe('invalid_search')
    expect((await matches(9, 'output~x')).status).toBe(404)
  })
})

describe('who may not see recordings', () => {
  it.each(PROFILES)('%s', async (profile) => {
    await h.addUser(profile, profile)
    const as = await h.signIn(profile)
    const { sessions, recordings } = FACTORY_PROFILES[profile]
    const may = reaches(sessions, 'view') && reaches(recordings, 'view')
    for (const q of ['output~failed', 'command~stop', 'file~salaries', 'user=x || command~stop']) {
      const answer = await get('/sessions', { q }, as)
      expect(answer.status).toBe(may ? 200 : 403)
      expect(answer.text.includes(idOf(1)) || answer.text.includes(idOf(2))).toBe(may)
    }
    const answer = await get(`/sessions/${idOf(1)}/matches`, { q: 'output~failed' }, as)
    expect(answer.status).toBe(reaches(recordings, 'view') ? 200 : 403)
  })
})

describe('what is told of it', () => {
  it('is an event before the answer, without the words, in which one may look for a secret', async () => {
    const canary = 'canary5f2e8b'
    await get('/sessions', { q: `output~${canary} && (command~x1 || output~x2)` })
    await get(`/sessions/${idOf(1)}/matches`, { q: `output~${canary}` })
    expect((await h.events('recording.search')).slice(-2)).toMatchObject([
      { user: 'admin', method: 'output command' },
      { user: 'admin', method: 'output', session: idOf(1) },
    ])
    expect(JSON.stringify(await h.events())).not.toContain(canary)
    expect(h.log.join('\n')).not.toContain(canary)
    h.audit.broken = true
    expect((await get('/sessions', { q: 'output~failed' })).status).toBe(503)
    h.audit.broken = false
  })
})

describe('where only auditors open recordings, or nothing is indexed', () => {
  it('answers so', async () => {
    Object.assign(contents, { mode: 'commands', isSealed: true })
    const answer = await get('/sessions', { q: 'command~stop || output~failed' })
    expect([answer.status, answer.body.error]).toEqual([409, 'sealed_to_auditors'])
    expect((await get(`/sessions/${idOf(1)}/matches`, { q: 'output~failed' })).status).toBe(409)
    expect((await get('/sessions', { q: 'command~stop' })).status).toBe(200)
    Object.assign(contents, { mode: 'commands', isSealed: false })
    expect((await get('/sessions', { q: 'output~failed' })).body.details[0].message).toContain(
      'recordings.search',
    )
    sealed.add(idOf(4))
    for (const form of ['.cast', '.txt', '.json']) {
      const refused = await h.call('GET', `/sessions/${idOf(4)}/recording${form}`, { cookie })
      expect([refused.status, refused.body.error]).toEqual([409, 'sealed_to_auditors'])
    }
    const off = await startHarness()
    const as = await off.signIn()
    const none = await off.call('GET', '/sessions?q=command~stop', { cookie: as })
    expect([none.status, none.body.error]).toEqual([400, 'invalid_search'])
    await off.close()
  })
})
