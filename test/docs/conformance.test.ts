/**
 * Pages with tables that name existing tests: each row's last cell is a file and the beginning of a title in
 * it.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const TESTS = join(import.meta.dirname, '..')
const PAGES = { 'conformance.md': 3, 'clients.md': 4, 'threat-model.md': 3 }

describe.each(Object.entries(PAGES))('docs/%s', (page, columns) => {
  const text = readFileSync(join(TESTS, '..', 'docs', page), 'utf8')
  const rows = text
    .split('\n\n')
    .filter((block) => /^\|.*\| shown by \|\n/.test(block))
    .flatMap((table) => table.trimEnd().split('\n').slice(2))
    .map((line) =>
      line
        .slice(2)
        .replace(/ \|$/, '')
        .split(/ ?(?<!\\)\| /),
    )

  test('has rows', () => expect(rows.length).toBeGreaterThan(15))

  test.each(rows.map((cells) => [cells[0], cells]))('%s', (_, cells) => {
    expect(cells).toHaveLength(columns)
    const [file = '', ...rest] = cells.at(-1)!.split(': ')
    const title = rest.join(': ')
    expect(title).not.toBe('')
    expect(existsSync(join(TESTS, file)), file).toBe(true)
    const text = readFileSync(join(TESTS, file), 'utf8')
    expect(["'", '"', '`'].some((quote) => text.includes(quote + title))).toBe(true)
  })
})
