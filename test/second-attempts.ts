/**
 * A reporter for vitest: lists the tests that passed at their second attempt only, with the error of the
 * first. Each is a race in the test or in the broker. In CI the run fails if one of them needed it in an
 * earlier run of the last ten, too. second-attempts.json has the known ones: when each was first seen, and
 * why.
 */
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { availableParallelism, homedir, loadavg } from 'node:os'
import { join } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'
import known from './second-attempts.json' with { type: 'json' }

/** Runs in which, this one included, a test may need its second attempt once. */
const RUNS = 10
/** Waiting programs per processor above which a run at its start is ignored. */
const MAX_LOAD = 2

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

export default class SecondAttempts implements Reporter {
  readonly #isCrowded = loadavg()[0]! > MAX_LOAD * availableParallelism()

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = Object.fromEntries(modules.flatMap(secondAttempts))
    for (const [test, reason] of Object.entries(tests)) this.#report(test, reason)
    if (!process.env['CI']) return
    if (this.#isCrowded) {
      if (Object.keys(tests).length > 0) console.log('\nnot counted: the machine was busy when the run began')
      return
    }
    for (const { test, runs } of repeated(history({ date: new Date().toISOString(), tests }))) {
      console.log(`\nneeded a second attempt in ${runs.length} of the last ${RUNS} runs: ${test}`)
      for (const run of runs) console.log(`  ${run.date}: ${run.tests[test]}`)
      process.exitCode = 1
    }
  }

  #report(test: string, reason: string): void {
    const entry = known.find((one) => one.test === test)
    const note = entry ? `known since ${entry.seen}: ${entry.reason}` : 'not yet in test/second-attempts.json'
    console.log(`\npassed at the second attempt: ${test} (${note})\n  ${reason}`)
  }
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

/** Returns the name of each such test of a file, and the error of its first attempt. */
function secondAttempts(module: TestModule): [string, string][] {
  return [...module.children.allTests('passed')]
    .filter((test) => test.diagnostic()?.flaky)
    .map((test) => {
      const reasons = (test.result().errors ?? []).map(({ message }) => message)
      return [`${module.relativeModuleId} > ${test.fullName}`, reasons.join('\n  ')]
    })
}
