import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import known from './second-attempts.json' with { type: 'json' }
import { addRun, type Run, repeated } from './second-attempts.ts'

const run = (date: string, ...tests: string[]): Run => ({
  date,
  tests: Object.fromEntries(tests.map((name) => [name, `${name} at ${date}`])),
})
const quiet = (count: number) => Array.from({ length: count }, () => run('between'))

describe('a test that needs its second attempt', () => {
  test('once is no failure', () => {
    expect(repeated([])).toEqual([])
    expect(repeated([run('1', 'a'), run('2', 'b')])).toEqual([])
  })

  test('twice in ten runs is one, with both reasons', () => {
    const history = [run('1', 'a', 'b'), ...quiet(8), run('10', 'a', 'c')]
    expect(repeated(history)).toEqual([{ test: 'a', runs: [history[0], history[9]] }])
  })

  test('in this run and in one before the last ten is no failure', () => {
    expect(repeated([run('1', 'a'), ...quiet(9), run('11', 'a')])).toEqual([])
  })

  test('in earlier runs only does not fail this one', () => {
    expect(repeated([run('1', 'a'), run('2', 'a'), run('3')])).toEqual([])
  })
})

describe('the history', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-history-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('begins with the first run and grows by each', () => {
    const inside = join(folder, 'not', 'yet')
    expect(addRun(inside, run('1', 'a'))).toEqual([run('1', 'a')])
    expect(addRun(inside, run('2'))).toEqual([run('1', 'a'), run('2')])
  })
})

test('each that is written down is a test of ours', () => {
  for (const { test: name } of known) expect(existsSync(name.split(' > ')[0]!), name).toBe(true)
})
