/**
 * `npm test`: type check, lint, every test. Arguments are passed to vitest, which then runs alone, and
 * installs no programs unless a chosen test uses them:
 *
 *   npm test -- test/model             the test files whose path contains it
 *   npm test -- --project e2e          a project of test/projects.ts
 *   npm test -- test/model -t 'text'   the tests with this in their name
 *   npm run test:unit                  the project `unit`: no programs, no sockets, under a minute
 *   npm run check                      type check and lint
 *
 * The last line counts the tests; for a whole run the type check and the lint count as one each.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
const report = join(folder, 'vitest.json')
const total = { passed: 0, failed: 0, skipped: 0 }
let running

/** Runs one of node_modules/.bin with its output shown; resolves to its exit code. */
function step(title, command, args, env = {}) {
  console.log(`\n── ${title}`)
  return new Promise((done) => {
    running = spawn(join('node_modules', '.bin', command), args, {
      stdio: 'inherit',
      env: { ...process.env, ...env },
    })
    running.on('error', (error) => {
      console.error(`${command} cannot be started: ${error.message}`)
      done(1)
    })
    running.on('close', (code, signal) => {
      if (signal) console.error(`${command} was ended by ${signal}`)
      done(code ?? 1)
    })
  })
}

function count(code) {
  if (code === 0) total.passed += 1
  else total.failed += 1
}

/**
 * Adds vitest's own report; a file that failed before its first test, or a failure outside of any, counts as
 * one.
 */
function countTests(code) {
  let result
  try {
    result = JSON.parse(readFileSync(report, 'utf8'))
  } catch {
    console.error('vitest wrote no report')
    total.failed += 1
    return
  }
  const brokenFiles = result.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length
  const failed = result.numFailedTests + brokenFiles
  total.passed += result.numPassedTests
  total.failed += failed === 0 && code !== 0 ? 1 : failed
  total.skipped += result.numPendingTests + (result.numTodoTests ?? 0)
}

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => running?.kill(signal))

const args = process.argv.slice(2)
if (args.length === 0) {
  count(await step('type check', 'tsc', ['--noEmit']))
  count(await step('lint', 'biome', ['check', '--error-on-warnings', '.']))
}
const reporters = ['default', 'json', './test/second-attempts.ts'].map((name) => `--reporter=${name}`)
reporters.push(`--outputFile.json=${report}`)
// Hundreds of brokers and commands are started, and half the cost of a start is compiling the same files.
const env = { NODE_COMPILE_CACHE: join(folder, 'compiled') }
countTests(await step('tests', 'vitest', ['run', ...reporters, ...args], env))
rmSync(folder, { recursive: true, force: true })

const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ''
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`)
process.exitCode = total.failed === 0 ? 0 : 1
