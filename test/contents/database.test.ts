/** The index over sessions: found, not found and removed sessions. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { MAX_SESSIONS_FOUND } from '../../src/contents/contents.ts'
import { ContentDatabase } from '../../src/contents/database.ts'
import { contentMode, prepareContents } from '../../src/contents/open.ts'
import { asked, BEGIN, HOUR, idOf, lineOf, makeFolder, output, recorded, removeFolders } from './support.ts'

let folder = ''
let path = ''
let database: ContentDatabase
beforeEach(() => {
  folder = makeFolder()
  path = join(folder, 'search.db')
  database = new ContentDatabase(path, 'full')
})
afterAll(removeFolders)

const found = (field: 'command' | 'file' | 'output', value: string) => {
  const sessions = database.sessionsWith(asked(field, value))
  return typeof sessions === 'string' ? sessions : sessions.toSorted()
}
const excerpts = (number: number, field: 'command' | 'file' | 'output', value: string) =>
  database.matches(idOf(number), [asked(field, value)]).map(({ at, excerpt }) => [at, excerpt])
const filesHold = (text: string) =>
  readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(text))

describe('words', () => {
  beforeEach(() => {
    database.putRecording(
      recorded(1, {
        output: output('Permission denied (publickey).', 'größe von /etc/shadow', 'x=10.0.0.5:22'),
      }),
    )
    database.putRecording(recorded(2, { output: output('denied permission', 'PERMIT denied') }))
  })

  test.each([
    ['permission', [1, 2]],
    ['PERMISSION', [1, 2]],
    ['permission denied', [1]],
    ['"permission" denied', [1]],
    ['permi', []],
    ['permi*', [1, 2]],
    ['permi*denied', [1, 2]],
    ['permission deni*', [1]],
    ['*permission', [1, 2]],
    ['ermission*', []],
    ['Größe', [1]],
    ['grosse', []],
    ['/etc/shadow', [1]],
    ['etc-shadow', [1]],
    ['10.0.0.5', [1]],
    ['10.0.5', []],
    ['permit*publickey', []],
  ])('%s', (value, sessions) => {
    expect(found('output', value)).toEqual(sessions.map(idOf))
  })

  test('the language of the database is not spoken', () => {
    for (const value of [
      'permission OR x',
      'permission NOT denied',
      'text : permission',
      'NEAR(permission)',
      '^denied',
    ])
      expect(found('output', value)).toEqual(value === '^denied' ? [1, 2].map(idOf) : [])
    for (const value of ['"', '""', "'", '(', '- + : ^ { }'])
      expect(() => asked('output', value)).toThrow('a word')
    expect(() => asked('output', 'a*')).toThrow('at least 2')
  })

  test('each field by itself, and all the lines of a session in their order', () => {
    database.addEvents(
      [...lineOf(1, 'command', 'cat /etc/shadow', 2), ...lineOf(1, 'file', '/etc/shadow', 3)],
      9,
    )
    expect(found('command', 'shadow')).toEqual([idOf(1)])
    const tests = [asked('output', 'shadow'), asked('command', 'shadow'), asked('file', 'shadow')]
    expect(database.matches(idOf(1), tests)).toEqual([
      { session: idOf(1), field: 'output', at: 1000, channel: 1, excerpt: 'größe von /etc/shadow' },
      { session: idOf(1), field: 'command', at: 2000, channel: undefined, excerpt: 'cat /etc/shadow' },
      { session: idOf(1), field: 'file', at: 3000, channel: undefined, excerpt: '/etc/shadow' },
    ])
    expect(database.matches(idOf(2), tests)).toEqual([])
    expect(database.matches(idOf(3), tests)).toEqual([])
  })

  test('the newest lines of all sessions first', () => {
    const lines = database.newest([asked('output', 'denied')], 2)
    expect(lines.map(({ session, excerpt }) => [session, excerpt])).toEqual([
      [idOf(2), 'PERMIT denied'],
      [idOf(2), 'denied permission'],
    ])
  })
})

test('sessions of a time, and of many lines each', () => {
  for (let number = 1; number <= 30; number++) {
    database.putRecording(
      recorded(number, { output: output(...Array.from({ length: 600 }, (_, i) => `root ${i}`)) }),
    )
  }
  expect(found('output', 'root')).toHaveLength(30)
  const between = { from: BEGIN + 5 * HOUR, to: BEGIN + 8 * HOUR }
  expect(database.sessionsWith(asked('output', 'root'), between)).toEqual([5, 6, 7].map(idOf))
  expect(database.sessionsWith(asked('output', 'root'), { from: 0, to: 1 })).toEqual([])
})

test('too many sessions, or too long a search, is told and not cut', () => {
  const count = MAX_SESSIONS_FOUND + 1
  for (let from = 1; from <= count; from += 5000) {
    const numbers = Array.from({ length: Math.min(5000, count + 1 - from) }, (_, i) => from + i)
    database.addEvents(
      numbers.flatMap((number) => lineOf(number, 'command', 'ls')),
      from,
    )
  }
  expect(found('command', 'ls')).toBe('too_many')
  let now = 0
  const slow = new ContentDatabase(path, 'full', () => (now += 1500))
  expect(slow.sessionsWith(asked('command', 'ls'))).toBe('too_slow')
  slow.close()
})

describe('events', () => {
  test('are added with how far they reach, or not at all', () => {
    database.addEvents(lineOf(1, 'command', 'whoami'), 7)
    expect(database.sequence()).toBe(7)
    const broken = [...lineOf(1, 'command', 'lost'), { kind: 'line', session: idOf(1) } as never]
    expect(() => database.addEvents(broken, 9)).toThrow()
    expect([database.sequence(), found('command', 'lost')]).toEqual([7, []])
  })

  test('of a session whose recording comes later, or came before, are there once', () => {
    database.addEvents(lineOf(1, 'command', 'whoami'), 1)
    const commands = output('whoami', 'whoami', 'id')
    for (let again = 0; again < 2; again++)
      database.putRecording(recorded(1, { commands, files: output('mkdir /x') }))
    expect(excerpts(1, 'command', 'whoami')).toEqual([
      [1000, 'whoami'],
      [1000, 'whoami'],
    ])
    expect(excerpts(1, 'command', 'id')).toEqual([[2000, 'id']])
    expect(excerpts(1, 'file', 'mkdir')).toHaveLength(1)
    expect(database.has(idOf(1), 'ab'.repeat(32))).toBe(true)
    expect(database.has(idOf(1), 'cd'.repeat(32))).toBe(false)
    expect(['events', 'full']).toEqual([database.extent(idOf(2)), database.extent(idOf(1))])
  })
})

test('a recording that is deleted leaves the index, its file, and does not come back', () => {
  const canary = 'canary7f3a91'
  database.addEvents(lineOf(1, 'command', `echo ${canary}`), 1)
  database.putRecording(recorded(1, { output: output(`the word is ${canary}`) }))
  database.putRecording(recorded(2, { output: output('something else') }))
  expect(filesHold(canary)).not.toEqual([])
  database.addEvents([{ kind: 'gone', session: idOf(1) }], 2)
  expect([found('output', canary), found('command', canary)]).toEqual([[], []])
  expect(filesHold(canary)).toEqual([])
  expect(database.has(idOf(1), 'ab'.repeat(32))).toBe(true)
  database.putRecording(recorded(1, { output: output(canary) }))
  database.addEvents(lineOf(1, 'command', canary), 3)
  expect([found('output', canary), found('command', canary)]).toEqual([[], []])
  database.addEvents([{ kind: 'back', session: idOf(1) }], 4)
  expect(database.has(idOf(1), 'ab'.repeat(32))).toBe(false)
})

describe('the file', () => {
  test('is its owner’s alone', () => {
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('is made anew when it is another mode’s, damaged, or knows too much; gone when it is off', () => {
    database.addEvents(lineOf(1, 'command', 'whoami'), 7)
    database.close()
    const sequence = (mode: string) => {
      const opened = new ContentDatabase(path, mode)
      const found = opened.sequence()
      opened.close()
      return found
    }
    prepareContents(path, 'full', 7)
    expect(sequence('full')).toBe(7)
    prepareContents(path, 'full', 6)
    expect(sequence('full')).toBe(0)
    prepareContents(path, 'commands', 7)
    expect(sequence('commands')).toBe(0)
    expect(() => new ContentDatabase(path, 'full')).toThrow('made otherwise')
    writeFileSync(path, 'no database at all, but long enough to be looked at as one'.repeat(100))
    prepareContents(path, 'commands', 7)
    expect(sequence('commands')).toBe(0)
    prepareContents(path, 'off', 7)
    expect(readdirSync(folder)).toEqual([])
  })

  test('holds no output where only auditors open recordings', () => {
    expect(contentMode({ search: 'full', brokerKey: false })).toBe('commands')
    expect(contentMode({ search: 'full', brokerKey: true })).toBe('full')
    expect(contentMode({ search: 'off', brokerKey: false })).toBe('off')
  })
})
