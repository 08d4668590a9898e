/**
 * The second attempt on the build server: test files that failed run once more, one at a time and in a new process,
 * so that nothing of the first attempt is in it. What passes then only is listed with the error of the
 * first: a race in the test or in the broker. The run fails if one of them needed it in an earlier run of the
 * last ten, too. second-attempts.json has the known ones: when each was first seen, and why.
 */
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { availableParallelism, homedir, loadavg } from 'node:os'
import { join } from 'node:path'
import type { FileResult, Report } from './report.ts'
import known from './second-attempts.json' with { type: 'json' }

/** Runs in which, this one included, a test may need its second attempt once. */
const RUNS = 10
/** Waiting programs per processor above which a run at its start is ignored. */
const MAX_LOAD = 2
/** Failed files from which on there is no second attempt: it is no race. */
const MAX_FILES = 8

export interface Run {
  date: string
  /** The error of the first attempt, by the test's file and name. */
  tests: Readonly<Record<string, string>>
}

export interface Repeated {
  test: string
  /** The runs in which it needed its second attempt, this one last. */
  runs: Run[]
}

export interface Counts {
  passed: number
  failed: number
  skipped: number
}

export const isFailed = (file: FileResult): boolean =>
  file.error !== undefined || file.tests.some(({ state }) => state === 'failed')

/** Returns the failed files by their project, or none if they are too many. */
export function toRepeat({ files }: Report): Map<string, string[]> {
  const failed = files.filter(isFailed)
  return failed.length > MAX_FILES
    ? new Map()
    : new Map(
        Object.entries(Object.groupBy(failed, ({ project }) => project)).map(([project, of]) => [
          project,
          of!.map(({ file }) => file),
        ]),
      )
}

const isSame =
  (a: FileResult) =>
  (b: FileResult): boolean =>
    a.project === b.project && a.file === b.file

/**
 * Returns the report with the files of the second attempt in place of those of the first. What failed and has not
 * passed since, but was skipped or has gone, stays failed.
 */
export function withSecond(first: Report, second: Report): Report {
  return {
    files: first.files.map((file) => {
      const again = second.files.find(isSame(file))
      return again ? afterBoth(file, again) : file
    }),
    errors: [...first.errors, ...second.errors],
  }
}

function afterBoth(file: FileResult, again: FileResult): FileResult {
  const known = new Set(again.tests.filter(({ state }) => state !== 'skipped').map(({ name }) => name))
  const left = file.tests.filter(({ name, state }) => state === 'failed' && !known.has(name))
  const names = new Set(left.map(({ name }) => name))
  const hasPassed = again.tests.some(({ state }) => state === 'passed')
  const error = again.error ?? (hasPassed ? undefined : file.error)
  const tests = [...again.tests.filter(({ name }) => !names.has(name)), ...left]
  return { project: file.project, file: file.file, tests, ...(error !== undefined && { error }) }
}

/** Returns the errors of the first attempt for what passed at the second only, by the test's file and name. */
export function passedAtSecond(first: Report, second: Report): Record<string, string> {
  return Object.fromEntries(
    first.files.flatMap((file) => {
      const again = second.files.find(isSame(file))
      if (again === undefined || again.error !== undefined) return []
      const tests = file.tests.filter(
        ({ name, error }) =>
          error !== undefined && again.tests.some((test) => test.name === name && test.state === 'passed'),
      )
      const isMended = again.tests.some(({ state }) => state === 'passed')
      const broken = file.error === undefined || !isMended ? [] : [[file.file, file.error] as const]
      return [...broken, ...tests.map(({ name, error }) => [`${file.file} > ${name}`, error!] as const)]
    }),
  )
}

/** Counts the tests; an error outside of any counts as a failed one. */
export function countsOf({ files, errors }: Report): Counts {
  const count = (state: string) =>
    files.flatMap(({ tests }) => tests).filter((test) => test.state === state).length
  const broken = files.filter(({ error }) => error !== undefined).length
  return {
    passed: count('passed'),
    failed: count('failed') + broken + errors.length,
    skipped: count('skipped'),
  }
}

/** Returns the tests of the last run that needed their second attempt in an earlier one of the last ten too. */
export function repeated(history: readonly Run[]): Repeated[] {
  const recent = history.slice(-RUNS)
  return Object.keys(recent.at(-1)?.tests ?? {})
    .map((test) => ({ test, runs: recent.filter((run) => test in run.tests) }))
    .filter(({ runs }) => runs.length > 1)
}

/** Adds a run to the history in the folder and returns all of it, the oldest first. */
export function addRun(folder: string, run: Run): Run[] {
  const file = join(folder, 'second-attempts.jsonl')
  mkdirSync(folder, { recursive: true })
  appendFileSync(file, `${JSON.stringify(run)}\n`)
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as Run)
}

/** Returns whether other programs have the processors: then a second attempt says little. */
export const isCrowded = (): boolean => loadavg()[0]! > MAX_LOAD * availableParallelism()

/** Prints the tests that passed at the second attempt, stores them, and returns how many needed it too often. */
export function judge(tests: Readonly<Record<string, string>>, crowded: boolean): number {
  for (const [test, reason] of Object.entries(tests)) {
    const entry = known.find((one) => one.test === test)
    const note = entry ? `known since ${entry.seen}: ${entry.reason}` : 'not yet in test/second-attempts.json'
    console.log(`\npassed at the second attempt: ${test} (${note})\n  ${reason}`)
  }
  if (crowded) {
    if (Object.keys(tests).length > 0) console.log('\nnot counted: the machine was busy when the run began')
    return 0
  }
  const often = repeated(history({ date: new Date().toISOString(), tests }))
  for (const { test, runs } of often) {
    console.log(`\nneeded a second attempt in ${runs.length} of the last ${RUNS} runs: ${test}`)
    for (const run of runs) console.log(`  ${run.date}: ${run.tests[test]}`)
  }
  return often.length
}

/** Adds the run to the history and returns all runs, or none if the history cannot be stored. */
function history(run: Run): Run[] {
  const folder = process.env['SALLYPORT_TEST_HISTORY'] ?? join(homedir(), '.cache', 'sallyport', 'tests')
  try {
    return addRun(folder, run)
  } catch (error) {
    console.log(`\nno history of runs is kept: ${error instanceof Error ? error.message : error}`)
    return []
  }
}
