import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FileResult, TestResult } from './report.ts'
import known from './second-attempts.json' with { type: 'json' }
import {
  addRun,
  countsOf,
  passedAtSecond,
  type Run,
  repeated,
  toRepeat,
  withSecond,
} from './second-attempts.ts'

const run = (date: string, ...tests: string[]): Run => ({
  date,
  tests: Object.fromEntries(tests.map((name) => [name, `${name} at ${date}`])),
})
const quiet = (count: number) => Array.from({ length: count }, () => run('between'))

const result = (name: string, state: TestResult['state']): TestResult =>
  state === 'failed' ? { name, state, error: `${name} has failed` } : { name, state }
const file = (project: string, path: string, ...tests: TestResult[]): FileResult => ({
  project,
  file: path,
  tests,
})
const broken = (project: string, path: string): FileResult => ({
  ...file(project, path, result('a', 'skipped')),
  error: 'the hook has failed',
})
const report = (...files: FileResult[]) => ({ files, errors: [] as string[] })

describe('a second attempt', () => {
  const first = report(
    file('e2e', 'x.test.ts', result('a', 'passed'), result('b', 'failed'), result('c', 'failed')),
    file('postgres', 'y.test.ts', result('a', 'failed')),
    file('unit', 'y.test.ts', result('a', 'passed'), result('b', 'skipped')),
    broken('e2e', 'z.test.ts'),
  )
  const second = report(
    file('e2e', 'x.test.ts', result('a', 'passed'), result('b', 'passed'), result('c', 'failed')),
    file('postgres', 'y.test.ts', result('a', 'failed')),
    file('e2e', 'z.test.ts', result('a', 'passed')),
  )

  test('is of the failed files, in their project', () => {
    expect([...toRepeat(first)]).toEqual([
      ['e2e', ['x.test.ts', 'z.test.ts']],
      ['postgres', ['y.test.ts']],
    ])
    expect([...toRepeat(report(first.files[2]!))]).toEqual([])
  })

  test('is not made when many have failed', () => {
    const many = Array.from({ length: 9 }, (_, index) => broken('e2e', `${index}.test.ts`))
    expect(toRepeat(report(...many)).size).toBe(0)
    expect(toRepeat(report(...many.slice(1))).get('e2e')).toHaveLength(8)
  })

  test('counts in place of the first, but not for errors of no file', () => {
    expect(countsOf(first)).toEqual({ passed: 2, failed: 4, skipped: 2 })
    expect(countsOf(withSecond(first, second))).toEqual({ passed: 4, failed: 2, skipped: 1 })
    const outside = { ...first, errors: ['a rejection'] }
    expect(countsOf(withSecond(outside, second))).toEqual({ passed: 4, failed: 3, skipped: 1 })
  })

  test('in which a test is skipped or missing does not mend it, nor does one without a test a broken file', () => {
    const failed = report(
      file('e2e', 'x.test.ts', result('a', 'failed'), result('b', 'failed')),
      broken('e2e', 'z.test.ts'),
    )
    const nothing = report(
      file('e2e', 'x.test.ts', result('a', 'skipped'), result('other', 'passed')),
      file('e2e', 'z.test.ts', result('a', 'skipped')),
    )
    expect(countsOf(withSecond(failed, nothing))).toEqual({ passed: 1, failed: 3, skipped: 1 })
    expect(passedAtSecond(failed, nothing)).toEqual({})
  })

  test('names what passed in it only, in the same project', () => {
    expect(passedAtSecond(first, second)).toEqual({
      'x.test.ts > b': 'b has failed',
      'z.test.ts': 'the hook has failed',
    })
    expect(passedAtSecond(first, report(broken('e2e', 'x.test.ts')))).toEqual({})
  })
})

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
