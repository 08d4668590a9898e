/** The set-up script, in a copy of the clone without packages, and the lock that its processes share. */
import { cpSync, existsSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freePort, run } from '../peers/process.ts'

const ROOT = join(import.meta.dirname, '..', '..')

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-setup-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('setup.mjs', () => {
  test('has nothing to do where the tests run, and does it at once', async () => {
    const begin = performance.now()
    const done = await run(process.execPath, [join(ROOT, 'bin', 'setup.mjs')])
    expect(done).toMatchObject({ code: 0, stdout: '' })
    expect(performance.now() - begin).toBeLessThan(5000)
  })

  test("has built ssh2's crypto binding so that a collected cipher does not abort the process", async () => {
    const done = await run(process.execPath, ['--expose-gc', join(ROOT, 'bin', 'binding-works.cjs')])
    expect(done).toMatchObject({ code: 0, signal: null, stderr: '' })
  })

  test('says in words that the registry cannot be reached', async () => {
    for (const name of ['bin', 'package.json', 'package-lock.json']) {
      cpSync(join(ROOT, name), join(folder, name), { recursive: true })
    }
    const env = {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${await freePort()}`,
      npm_config_cache: join(folder, 'cache'),
      npm_config_fetch_retries: '0',
    }
    const done = await run(process.execPath, [join(folder, 'bin', 'setup.mjs')], { env })
    expect(done).toMatchObject({ code: 1, stdout: '' })
    expect(done.stderr).toContain('sallyport: the package registry cannot be reached: check the network')
    expect(existsSync(join(folder, 'node_modules', '.sallyport-setup'))).toBe(false)
    expect(existsSync(join(folder, '.setup.lock'))).toBe(false)
  })
})

describe('lock.mjs', () => {
  /** Starts a process that writes when it takes the lock and when it releases it. */
  const worker = (): Promise<{ code: number | null; stderr: string }> => {
    const script = `
      import { appendFileSync } from 'node:fs'
      import { withLock } from ${JSON.stringify(join(ROOT, 'bin', 'lock.mjs'))}
      await withLock('lock', () => {}, async () => {
        appendFileSync('log', 'begin ')
        await new Promise((done) => setTimeout(done, 50))
        appendFileSync('log', 'end ')
      })`
    return run(process.execPath, ['--input-type=module', '-e', script], { cwd: folder })
  }

  test('lets one in at a time', async () => {
    const results = await Promise.all([worker(), worker(), worker(), worker()])
    expect(results.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
      Array(4).fill({ code: 0, stderr: '' }),
    )
    expect(readFileSync(join(folder, 'log'), 'utf8')).toBe('begin end '.repeat(4))
    expect(() => readlinkSync(join(folder, 'lock'))).toThrow('ENOENT')
  })

  test('is taken over, by one only, from a process that has ended', async () => {
    const ended = await run(process.execPath, ['-p', 'process.pid'])
    symlinkSync(ended.stdout.trim(), join(folder, 'lock'))
    await Promise.all([worker(), worker(), worker()])
    expect(readFileSync(join(folder, 'log'), 'utf8')).toBe('begin end '.repeat(3))
  })
})
