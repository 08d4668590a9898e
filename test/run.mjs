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
import { REPORT } from './report.ts'
import { countsOf, isCrowded, judge, passedAtSecond, toRepeat, withSecond } from './second-attempts.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
const total = { passed: 0, failed: 0, skipped: 0 }
const running = new Set()

/** Runs one of node_modules/.bin with its output shown; resolves to its exit code. */
function step(title, command, args, env = {}) {
  console.log(`\n── ${title}`)
  return new Promise((done) => {
    const child = spawn(join('node_modules', '.bin', command), args, {
      stdio: 'inherit',
      env: { ...process.env, ...env },
    })
    running.add(child)
    child.on('error', (error) => {
      console.error(`${command} cannot be started: ${error.message}`)
      done(1)
    })
    child.on('close', (code, signal) => {
      running.delete(child)
      if (signal) console.error(`${command} was ended by ${signal}`)
      done(code ?? 1)
    })
  })
}

function count(code) {
  if (code === 0) total.passed += 1
  else total.failed += 1
}

/** Runs vitest; resolves to its report (test/report.ts). One that fails without a word has an error of its own. */
async function runTests(title, args) {
  const path = join(folder, 'report.json')
  rmSync(path, { force: true })
  // Hundreds of brokers and commands are started, and half the cost of a start is compiling the same files.
  const env = { NODE_COMPILE_CACHE: join(folder, 'compiled'), [REPORT]: path }
  const reporters = ['default', './test/report.ts'].map((name) => `--reporter=${name}`)
  const code = await step(title, 'vitest', ['run', ...reporters, ...args], env)
  try {
    const report = JSON.parse(readFileSync(path, 'utf8'))
    const isSilent = code !== 0 && countsOf(report).failed === 0
    return isSilent ? { ...report, errors: [`vitest ended with ${code}`] } : report
  } catch {
    console.error('vitest wrote no report')
    return { files: [], errors: ['no report'] }
  }
}

/** Runs every test; on the build server what failed has a second attempt (test/second-attempts.ts). */
async function runAll() {
  const crowded = isCrowded()
  const first = await runTests('tests', [])
  if (!process.env.CI) return first
  const second = { files: [], errors: [] }
  for (const [project, files] of toRepeat(first)) {
    const args = ['--project', project, '--no-file-parallelism', ...files]
    const { files: again, errors } = await runTests(`second attempt: ${project}`, args)
    second.files.push(...again)
    second.errors.push(...errors)
  }
  total.failed += judge(passedAtSecond(first, second), crowded)
  return withSecond(first, second)
}

function stop(signal) {
  for (const child of running) child.kill(signal)
}
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop)

const args = process.argv.slice(2)
if (args.length === 0) {
  // Each of them has one busy thread.
  const checks = [
    step('type check', 'tsc', ['--noEmit']),
    step('lint', 'biome', ['check', '--error-on-warnings', '.']),
  ]
  for (const code of await Promise.all(checks)) count(code)
}
const counts = countsOf(args.length === 0 ? await runAll() : await runTests('tests', args))
for (const [state, number] of Object.entries(counts)) total[state] += number
rmSync(folder, { recursive: true, force: true })

const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ''
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`)
process.exitCode = total.failed === 0 ? 0 : 1
