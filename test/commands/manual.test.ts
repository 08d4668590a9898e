/** The manual pages, and what shells complete, are those of the commands. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandsNamed } from '../../src/commands/all.ts'
import { commandPage, configurationPage } from '../../src/commands/manual.ts'
import { configJsonSchema } from '../../src/config/jsonschema.ts'
import { sallyportCommand } from '../peers/broker.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'

const PAGES = join(import.meta.dirname, '..', '..', 'man')
const folder = mkdtempSync(join(tmpdir(), 'sallyport-completion-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('the pages are what npm run man writes', async () => {
  const commands = await commandsNamed(undefined)
  expect(readFileSync(join(PAGES, 'sallyport.1'), 'utf8')).toBe(commandPage(commands))
  expect(readFileSync(join(PAGES, 'sallyport.yaml.5'), 'utf8')).toBe(configurationPage(configJsonSchema()))
})

describeWithPeers('the pages are read by man without a warning', ['groff', 'mandoc'], () => {
  test.each(['sallyport.1', 'sallyport.yaml.5'])('%s', (page) => {
    const path = join(PAGES, page)
    const groff = spawnSync('groff', ['-man', '-ww', '-Tutf8', '-z', path], { encoding: 'utf8' })
    expect([groff.status, groff.stderr]).toEqual([0, ''])
    const mandoc = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', path], { encoding: 'utf8' })
    expect([mandoc.status, mandoc.stdout]).toEqual([0, ''])
  })
})

describeWithPeers('shells complete', ['zsh', 'fish'], () => {
  const script: Record<string, string> = {}
  beforeAll(async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const done = await run(...sallyportCommand(['completion', shell]))
      expect([done.code, done.stderr]).toEqual([0, ''])
      script[shell] = join(folder, `sallyport.${shell}`)
      writeFileSync(script[shell], done.stdout)
    }
  })

  /** Returns what each shell offers behind these words, the last of which is being typed. */
  const offered: Record<string, (words: string[]) => string[]> = {
    bash: (words) =>
      lines('bash', [
        '--norc',
        '-c',
        `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sallyport; printf '%s\\n' "\${COMPREPLY[@]}"`,
        script['bash']!,
        ...words,
      ]),
    zsh: (words) => {
      const all = lines('zsh', [
        '-f',
        '-c',
        'compdef() { }; _files() { }; compadd() { shift; print -l -- "$@" }; source "$0"; words=("$@"); CURRENT=$#; _sallyport',
        script['zsh']!,
        ...words,
      ])
      // The shell itself, not the script, matches the beginning.
      return all.filter((one) => one.startsWith(words.at(-1)!))
    },
    fish: (words) =>
      lines('fish', ['--no-config', '-c', `source ${script['fish']}; complete -C '${words.join(' ')}'`]).map(
        (line) => line.replace(/\t.*/, ''),
      ),
  }
  const lines = (program: string, args: string[]) =>
    execFileSync(program, args, { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line !== '')

  test.each(['bash', 'zsh', 'fish'])('%s', (shell) => {
    const of = (...words: string[]) => offered[shell]!(['sallyport', ...words]).toSorted()
    expect(of('se')).toEqual(['secret', 'serve', 'sessions'])
    expect(of('sessions', '')).toEqual(['kill', 'list', 'resume', 'suspend'])
    expect(of('events', 'list', '--t')).toEqual(['--target', '--text', '--to'])
    expect(of('events', 'list', '--key')).toEqual(['--key-file'])
  })
})
