import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CHANGE_PLUGINS } from '../../src/model/change-plugins.ts'

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/password-change.md'), 'utf8')

test.each(Object.entries(CHANGE_PLUGINS))(
  'the page has all parameters of %s, and no others',
  (name, kind) => {
    const [, section = ''] = PAGE.split(new RegExp(`^## ${name}$`, 'm'))
    const table = section
      .split(/^## /m)[0]!
      .split('\n')
      .filter((line) => line.startsWith('| `'))
    const named = table.flatMap((line) =>
      [...line.split('|')[1]!.matchAll(/`([a-z_]+)`/g)].map(([, one]) => one!),
    )
    expect(named.toSorted()).toEqual(Object.keys(kind.parameters).toSorted())
  },
)
