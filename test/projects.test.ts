import { fork, spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { filesOf, PATTERNS, type ProjectName } from './projects.ts'

const cwd = join(import.meta.dirname, '..')
const NAMES = Object.keys(PATTERNS) as ProjectName[]

const found = (patterns: readonly string[]) => globSync(patterns, { cwd })

const FILES = new Map(
  NAMES.map((name) => {
    const { include, exclude } = filesOf(name)
    const others = new Set(found(exclude))
    return [name, found(include).filter((file) => !others.has(file))]
  }),
)

/** Returns a pattern for each of the names that a pattern has in braces. */
function alternatives(pattern: string): string[] {
  const [, before, names, after] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? []
  return names === undefined ? [pattern] : names.split(',').map((name) => `${before}${name}${after}`)
}

describe('every test file', () => {
  test('belongs to one project', () => {
    expect([...FILES.values()].flat().sort()).toEqual(found(['test/**/*.test.ts']).sort())
  })

  test.each(NAMES)('of %s is there', (name) => {
    for (const pattern of PATTERNS[name].flatMap(alternatives)) {
      const files = new Set(found([pattern]))
      expect(
        FILES.get(name)?.some((file) => files.has(file)),
        pattern,
      ).toBe(true)
    }
  })
})

describe('a unit test', () => {
  test.each<[string, () => unknown]>([
    ['starts a program', () => spawnSync('true')],
    ['starts a program', () => fork('x')],
    ['listens on a socket', () => createServer().listen(0)],
    ['connects a socket', () => connect(1)],
    ['starts a thread', () => new Worker('', { eval: true })],
  ])('that %s is refused', (what, attempt) => {
    expect(attempt).toThrow(`a unit test ${what}: give its file to another project in test/projects.ts`)
  })
})
