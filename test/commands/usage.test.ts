/** Wrong usage of each command, in this process: as programs they would take half a minute. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { commandLine } from '../../src/commands/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-usage-'))
const config = join(folder, 'usage.yaml')
writeFileSync(config, stringify({ data_dir: join(folder, 'usage') }))
afterAll(() => rmSync(folder, { recursive: true }))

test.each([
  [['frobnicate']],
  [['constructor']],
  [['serve', 'now']],
  [['version', 'please']],
  [['check', '--fast']],
  [['recordings']],
  [['recordings', 'eat']],
  [['recordings', 'constructor']],
  [['recordings', 'export']],
  [['recordings', 'export', 'ID', '--format', 'gif']],
  [['recordings', 'export', 'ID', '--at', '3']],
  [['recordings', 'play', 'ID', '--speed', 'fast']],
  [['audit', 'repair']],
  [['admin', 'reset-password']],
  [['master-key', 'show']],
  [['backup']],
  [['backup', 'one', 'two']],
  [['restore']],
  [['restore', 'one', '--force']],
])('%j is exit code 2 and shows the usage', async (words) => {
  let out = ''
  let error = ''
  const code = await commandLine([...words, '--config', config], {
    out: (text) => {
      out += text
    },
    error: (text) => {
      error += text
    },
  })
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(error).toMatch(/^sallyport: .+\nusage:\n/)
  expect(existsSync(join(folder, 'usage'))).toBe(false)
})
