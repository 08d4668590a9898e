/**
 * A reporter for vitest: writes the result of each test file as JSON, for test/run.mjs. vitest's own names neither
 * the projects nor the errors outside of tests.
 */
import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/** Environment variable with the path of the report. */
export const REPORT = 'SALLYPORT_TEST_REPORT'

export interface TestResult {
  name: string
  state: 'passed' | 'failed' | 'skipped'
  /** Set when it failed. */
  error?: string
}

export interface FileResult {
  project: string
  /** The path within the repository. */
  file: string
  tests: TestResult[]
  /** Set when something outside of its tests failed: a hook, an import. */
  error?: string
}

export interface Report {
  files: FileResult[]
  /** Errors of no file, such as a rejection that nothing handles. */
  errors: string[]
}

type Errors = readonly { message: string }[]

export default class JsonReport implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: Errors): void {
    const report: Report = { files: modules.map(fileResult), errors: errors.map(({ message }) => message) }
    const path = process.env[REPORT]
    if (path !== undefined) writeFileSync(path, JSON.stringify(report))
  }
}

function fileResult(module: TestModule): FileResult {
  const tests = [...module.children.allTests()].map((test): TestResult => {
    const { state, errors } = test.result()
    const name = test.fullName
    if (state === 'failed') return { name, state, error: text(errors) }
    return { name, state: state === 'passed' ? state : 'skipped' }
  })
  const errors = [module, ...module.children.allSuites()].flatMap((part) => part.errors())
  const broken = errors.length > 0 ? { error: text(errors) } : {}
  return { project: module.project.name, file: module.relativeModuleId, tests, ...broken }
}

const text = (errors: Errors): string => errors.map(({ message }) => message).join('\n  ')
