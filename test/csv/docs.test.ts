import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { ResourceContext } from '../../src/api/access/context.ts'
import { CSV_NAMES } from '../../src/api/access/table-names.ts'
import { tableOf } from '../../src/api/csv/tables.ts'
import { temporaryStore } from '../store/temp.ts'

it('docs/csv.md lists every table with its columns, those that are required in bold', async () => {
  const { store, remove } = await temporaryStore()
  const context = { deps: { store } } as unknown as ResourceContext
  const text = readFileSync(new URL('../../docs/csv.md', import.meta.url), 'utf8')
  const listed = text.split('\n').filter((line) => /^\| `/.test(line))
  const expected = CSV_NAMES.map((name) => {
    const { columns, required } = tableOf(name, context)
    const shown = columns.map((one) =>
      required.includes(one.name) ? `**\`${one.name}\`**` : `\`${one.name}\``,
    )
    return `| \`${name}\` | ${shown.join(' ')} |`
  })
  expect(listed).toEqual(expected)
  await remove()
})
