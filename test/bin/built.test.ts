/** The build of a clone, and the program that runs it: with small sources in a folder of their own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { build, builtProgram } from '../../bin/built.mjs'
import { run } from '../peers/process.ts'
import { until } from '../until.ts'

const ROOT = join(import.meta.dirname, '..', '..')
/** Prints how it was started. */
const MAIN = `import { kind } from './kind.ts'
const { pid, execArgv, env, argv } = process
const malloc: (string | undefined)[] = [env['MALLOC_ARENA_MAX'], env['MALLOC_TRIM_THRESHOLD_']]
console.log(JSON.stringify({ kind, pid, execArgv, malloc, words: argv.slice(2) }))
`

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-built-'))
  for (const name of ['src', 'proxies', 'recordings']) mkdirSync(join(folder, name))
  for (const name of ['bin', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json']) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'src', 'main.ts'), MAIN)
  writeFileSync(
    join(folder, 'src', 'kind.ts'),
    "export const kind: string = import.meta.url.endsWith('.ts') ? 'sources' : 'build'\n",
  )
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const builds = () => readdirSync(join(folder, 'dist')).filter((name) => name !== 'current')

/** Makes all builds two days old. */
function age(): void {
  const then = Date.now() / 1_000 - 2 * 86_400
  for (const name of builds()) utimesSync(join(folder, 'dist', name), then, then)
}

/** Runs bin/sallyport.js of the folder; resolves to what its program printed. */
async function started(words: string[], env: NodeJS.ProcessEnv = {}) {
  const { MALLOC_ARENA_MAX, MALLOC_TRIM_THRESHOLD_, ...plain } = process.env
  const args = ['--disable-warning=ExperimentalWarning', join(folder, 'bin', 'sallyport.js'), ...words]
  const done = await run(process.execPath, args, { env: { ...plain, ...env }, timeout: 300_000 })
  expect(done).toMatchObject({ code: 0, stderr: '' })
  return JSON.parse(done.stdout)
}

test('a clone runs from its sources until they are built, and again after a change', async () => {
  expect(builtProgram(folder)).toBeUndefined()
  expect(await started(['version'])).toMatchObject({ kind: 'sources', words: ['version'] })
  build(folder, { checks: false })
  expect(builtProgram(folder)).toBeDefined()
  expect(await started(['version'])).toMatchObject({ kind: 'build', words: ['version'] })
  appendFileSync(join(folder, 'src', 'kind.ts'), '// changed\n')
  expect(builtProgram(folder)).toBeUndefined()
  expect(await started(['version'])).toMatchObject({ kind: 'sources' })
})

test('a build has no output of a source that was removed, and none of types that are wrong', () => {
  const other = join(folder, 'src', 'other.ts')
  writeFileSync(other, 'export const other: number = 1\n')
  build(folder, { checks: true })
  rmSync(other)
  expect(builtProgram(folder)).toBeUndefined()
  build(folder, { checks: true })
  const program = builtProgram(folder)!
  expect(existsSync(program)).toBe(true)
  expect(existsSync(join(dirname(program), 'other.js'))).toBe(false)

  writeFileSync(other, "export const other: number = 'no number'\n")
  expect(() => build(folder, { checks: true })).toThrow('Command failed')
  expect(builtProgram(folder)).toBeUndefined()
})

test('a build that was half removed is built again', () => {
  build(folder, { checks: false })
  const program = builtProgram(folder)!
  rmSync(program)
  expect(builtProgram(folder)).toBeUndefined()
  build(folder, { checks: false })
  expect(builtProgram(folder)).toBe(program)
  expect(builds()).toHaveLength(1)
})

test('a package, which has no sources, runs its build', async () => {
  build(folder, { checks: false })
  for (const name of ['src', 'proxies', 'recordings']) rmSync(join(folder, name), { recursive: true })
  expect(await started(['version'])).toMatchObject({ kind: 'build' })
})

test('a broker that runs keeps its build: later builds are beside it, and go when nothing runs from them', async () => {
  // Loads a part of it late, as a broker starts its workers.
  const late = join(folder, 'src', 'late.ts')
  const main = `setTimeout(() => undefined, 60_000)
process.on('SIGUSR2', async () => {
  const { kind } = await import('./late.ts')
  console.log(kind)
})
console.log('ready')
`
  writeFileSync(join(folder, 'src', 'main.ts'), main)
  writeFileSync(late, "export const kind: string = 'of the broker'\n")
  build(folder, { checks: false })
  const broker = spawn(process.execPath, [join(folder, 'bin', 'sallyport.js'), 'serve'])
  let said = ''
  broker.stdout.on('data', (text) => {
    said += text
  })
  try {
    await until('the broker', () => (said.includes('ready') ? true : undefined))
    writeFileSync(late, "export const kind: string = 'of a later build'\n")
    build(folder, { checks: false })
    appendFileSync(late, '// once more\n')
    age()
    build(folder, { checks: false })
    expect(builds()).toHaveLength(2)
    broker.kill('SIGUSR2')
    await until('the late part', () => (said.includes('of ') ? true : undefined))
    expect(said).toContain('of the broker')
  } finally {
    const ended = once(broker, 'exit')
    broker.kill('SIGKILL')
    await ended
  }
  appendFileSync(late, '// and again\n')
  build(folder, { checks: false })
  // A young one stays.
  expect(builds()).toHaveLength(2)
  age()
  appendFileSync(late, '// and again\n')
  build(folder, { checks: false })
  expect(builds()).toHaveLength(1)
})

test('serve runs with the settings for little memory, and keeps those of the environment', async () => {
  build(folder, { checks: false })
  const semi = '--max-semi-space-size=4'
  const words = ['serve', '--config', 'a b']
  const serving = await started(words)
  expect(serving).toMatchObject({ kind: 'build', malloc: ['2', '131072'], words })
  expect(serving.execArgv).toContain(semi)
  expect(await started(words, { MALLOC_ARENA_MAX: '4' })).toMatchObject({ malloc: ['4', '131072'] })
  const other = await started(['version'])
  expect(other).toMatchObject({ malloc: [null, null] })
  expect(other.execArgv).not.toContain(semi)
})
