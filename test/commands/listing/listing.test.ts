/** Listings: their questions, and the form of their answers. */
import { describe, expect, test } from 'vitest'
import { UsageError } from '../../../src/commands/command.ts'
import { conditionsOf, limitOption, quoted } from '../../../src/commands/listing/question.ts'
import { printListing, tableOf } from '../../../src/commands/listing/table.ts'
import { bind } from '../../../src/search/bind.ts'
import { meets } from '../../../src/search/evaluate.ts'
import { parse } from '../../../src/search/parser.ts'
import { SESSION_FIELDS } from '../../../src/store/sessions.ts'

const NOW = Date.UTC(2031, 4, 30, 12, 30)
const asked = (options: Record<string, string>) => ({ config: '', options, words: [], all: async () => [] })
const SESSION = {
  user: 'ops1',
  account: 'root',
  domain: 'local',
  device: 'srv1',
  service: 'ssh',
  target_host: '192.0.2.9',
  begin: '2031-05-30T11:00:00.000Z',
}
const finds = (options: Record<string, string>, one: object = {}) => {
  const expression = parse(conditionsOf(asked(options), 'begin', NOW).join(' && '))
  return meets({ ...SESSION, ...one }, bind({ expression, variables: {} }, SESSION_FIELDS))
}

describe('a target is meant by', () => {
  test.each([
    'root@local:srv1:ssh',
    'root@local:srv1',
    'root@local',
    'root@srv1',
    'srv1:ssh',
    'srv1',
    'rv',
    '192.0.2',
    'ro*@*:srv*',
  ])('%s', (target) => expect(finds({ target })).toBe(true))
  test.each(['root@local:srv2', 'admin@srv1', 'ssh:srv1', 'srv1:s', 'srv2', 'root@ssh'])(
    'not by %s',
    (target) => expect(finds({ target })).toBe(false),
  )
  test.each(['', '@srv1', 'root@', 'a@b:c:d:e', 'local:srv1:ssh', 'a::b'])('%s is wrong usage', (target) =>
    expect(() => finds({ target })).toThrow(UsageError),
  )
})

describe('a time is meant by', () => {
  test.each([
    [{ from: '2h' }, '2031-05-30T10:30:00.000Z', true],
    [{ from: '2h' }, '2031-05-30T10:29:59.999Z', false],
    [{ from: 'yesterday', to: 'yesterday' }, '2031-05-29T23:59:59.999Z', true],
    [{ from: 'yesterday', to: 'yesterday' }, '2031-05-30T00:00:00.000Z', false],
    [{ from: 'today' }, '2031-05-30T00:00:00.000Z', true],
    [{ to: 'now' }, '2031-05-30T12:30:00.000Z', true],
    [{ from: '2031-05-30', to: '2031-05-30' }, '2031-05-30T23:59:59.999Z', true],
    [{ to: '2031-05-30T11:00:00Z' }, '2031-05-30T11:00:00.001Z', false],
    [{ from: '2031-05-30T13:00:00+02:00' }, '2031-05-30T11:00:00.000Z', true],
  ])('%j: %s', (options: Record<string, string>, begin, expected) =>
    expect(finds(options, { begin })).toBe(expected),
  )
  test.each(['tomorrow', '2h30m', '30/05/2031', '2031-02-30', ''])('not by %j', (from) =>
    expect(() => finds({ from })).toThrow(UsageError),
  )
})

test('a user is whole, or has stars; quotes and backslashes are the user’s', () => {
  expect([finds({ user: 'OPS1' }), finds({ user: 'ops' }), finds({ user: 'ops*' })]).toEqual([
    true,
    false,
    true,
  ])
  expect(finds({ user: 'a" || user~"*' })).toBe(false)
  expect(quoted('a"\\b')).toBe('"a\\"\\\\b"')
})

test.each(['0', '-1', 'x', '1000001', '1e3'])('--limit %s is wrong usage', (limit) =>
  expect(() => limitOption(asked({ limit }))).toThrow(UsageError),
)

describe('a listing', () => {
  const columns = [
    { title: 'WHO', value: ({ who }: { who: string; what: string }) => who },
    { title: 'WHAT', value: ({ what }: { who: string; what: string }) => what },
  ]
  const rows = [
    { who: 'ops1', what: `ls ${'x'.repeat(100)}` },
    { who: 'eve\u001b[2J\u202e', what: 'a\nb' },
  ]
  test('fits the terminal, and cannot control it', () => {
    const lines = tableOf(rows, columns, { write: () => {}, isTTY: true, columns: 40 })
    expect(lines[0]).toMatch(/^WHO +WHAT$/)
    for (const line of lines) {
      expect(line.length).toBeLessThanOrEqual(40)
      expect(line).not.toMatch(/[\u0000-\u001f\u202e]/)
    }
    expect(lines[1]).toMatch(/…$/)
  })
  test('is whole words in a line for a pipe, and one object a line as JSON', () => {
    const written: string[] = []
    const output = { write: (text: string) => written.push(text) }
    printListing(rows.slice(0, 1), columns, false, output)
    printListing(rows, columns, true, output)
    expect(written[0]).toBe(`ops1 ls ${'x'.repeat(100)}\n`)
    expect(
      written[1]!
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(rows)
  })
})
