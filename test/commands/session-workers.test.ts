/** The finding of `sallyport check` about session workers: a real process is started in their cage. */
import { execFile } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sessionWorkers } from '../../src/commands/session-workers.ts'

const isRoot = process.getuid!() === 0
const NOBODY = 65_534
let dataDir: string
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'check-'))
})
afterAll(() => rmSync(dataDir, { recursive: true }))

describe('check', () => {
  test.runIf(isRoot)('reports the cage of workers of their own user', async () => {
    expect(await sessionWorkers({ workers: 1, runAs: 'nobody', dataDir })).toEqual({
      level: 'ok',
      subject: 'workers',
      text: expect.stringMatching(
        /^session workers run as user 65534: they have no new privileges, Landlock \d+, a filter of system calls, closed memory, Node's permissions$/,
      ),
    })
  })

  test('says without root that there is no boundary, and what is missing', async () => {
    const module = JSON.stringify(join(import.meta.dirname, '../../src/commands/session-workers.ts'))
    const code = `import { sessionWorkers } from ${module}
process.stdout.write(JSON.stringify(await sessionWorkers({ workers: 1, dataDir: '/none' })))`
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', code],
      { cwd: '/', ...(isRoot && { uid: NOBODY, gid: NOBODY }) },
    )
    expect(JSON.parse(stdout)).toEqual({
      level: 'warning',
      subject: 'workers',
      text: expect.stringMatching(
        /^no boundary: without root, session workers run as the broker's own user \(\d+\), and the kernel's separation of users is missing: start as root, or with the capabilities CAP_SETUID, CAP_SETGID and CAP_KILL, with run_as; they have no new privileges/,
      ),
    })
  })

  test('warns of sessions in the broker itself', async () => {
    expect(await sessionWorkers({ workers: 0, dataDir })).toMatchObject({
      level: 'warning',
      text: expect.stringMatching(/^no boundary: /),
    })
  })

  test.runIf(isRoot)('names the remedy if the user does not exist', async () => {
    expect(await sessionWorkers({ workers: 1, runAs: 'no-such-user', dataDir })).toMatchObject({
      level: 'error',
      text: expect.stringContaining(
        'useradd --system --no-create-home --shell /usr/sbin/nologin no-such-user',
      ),
    })
  })

  test.runIf(isRoot)("refuses the data folder's owner", async () => {
    chownSync(dataDir, NOBODY, NOBODY)
    expect(await sessionWorkers({ workers: 1, runAs: 'nobody', dataDir })).toMatchObject({
      level: 'error',
      text: expect.stringMatching(/^no boundary: .* belongs to user 65534/),
    })
  })
})
