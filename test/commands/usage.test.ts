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

async function ran(words: string[]): Promise<{ code: number; out: string; error: string }> {
  let out = ''
  let error = ''
  const code = await commandLine(words, {
    out: (text) => {
      out += text
    },
    error: (text) => {
      error += text
    },
  })
  return { code, out, error }
}

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
  const { code, out, error } = await ran([...words, '--config', config])
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(error).toMatch(/^sallyport: .+\nusage:\n/)
  expect(existsSync(join(folder, 'usage'))).toBe(false)
})

test.each([
  [['--help'], /sallyport serve [\s\S]*sallyport backup /],
  [['help'], /sallyport serve [\s\S]*sallyport backup /],
  [['help', 'backup'], /^usage:\n {2}sallyport backup /],
  [['backup', '--help'], /^usage:\n {2}sallyport backup /],
  [['backup', '-h', '--no-such', 'one', 'two'], /^usage:\n {2}sallyport backup /],
])('%j is help', async (words, shown) => {
  const { code, out, error } = await ran(words)
  expect({ code, error }).toEqual({ code: 0, error: '' })
  expect(out).toMatch(shown)
})

test('help behind -- is asked of another program', async () => {
  const { code, out } = await ran([
    'secret',
    'exec',
    '--config',
    join(folder, 'none.yaml'),
    '--',
    'true',
    '--help',
  ])
  expect({ code, out }).not.toMatchObject({ code: 0 })
  expect(out).toBe('')
})

test.each([
  [['chekc'], 'sallyport: there is no command "chekc": did you mean check?'],
  [['help', 'chekc'], 'sallyport: there is no command "chekc": did you mean check?'],
  [['frobnicate'], 'sallyport: there is no command "frobnicate"'],
  [['events', 'list', '--evnt', 'x'], 'sallyport: events has no option "--evnt": did you mean --event?'],
  [['events', 'list', '-q'], 'sallyport: events has no option "-q"'],
])('%j names what is near', async (words, line) => {
  const { code, error } = await ran(words)
  expect(code).toBe(2)
  expect(error.split('\n')[0]).toBe(line)
})
