/** docs/conformance.md names tests that exist: each row's last cell is a file and what a title in it begins with. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const TESTS = join(import.meta.dirname, '..')
const text = readFileSync(join(TESTS, '..', 'docs', 'conformance.md'), 'utf8')
const rows = text
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| the specification'))
  .map((line) => line.replace(/ \|$/, '').split(/ (?<!\\)\| /))

describe('docs/conformance.md', () => {
  test('has rows', () => expect(rows.length).toBeGreaterThan(40))

  test.each(rows.map((cells) => [cells[0], cells]))('%s', (_, cells) => {
    expect(cells).toHaveLength(3)
    const [file = '', ...rest] = cells[2]!.split(': ')
    const title = rest.join(': ')
    expect(title).not.toBe('')
    expect(existsSync(join(TESTS, file)), file).toBe(true)
    const titles = readFileSync(join(TESTS, file), 'utf8').matchAll(/(?:describe|it|test)\b[^'"`]*['"`](.+)/g)
    expect([...titles].some(([, begun]) => begun?.startsWith(title))).toBe(true)
  })
})
