/** docs/architecture.md: the map has every room, and each invariant names a test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TIERS } from '../architecture/rules.ts'
import { ROOT } from './walks.ts'

const page = readFileSync(join(ROOT, 'docs', 'architecture.md'), 'utf8')

/** Returns the text below a heading of the second level, up to the next one. */
function section(title: string): string {
  const [, text] = page.split(`\n## ${title}\n`)
  return text?.split('\n## ')[0] ?? ''
}

test('the code map has a line for every room, and marks the pure ones', () => {
  const lines = section('Code map').split('\n- ')
  const shown = TIERS.flatMap(({ rooms }) =>
    Object.entries(rooms).map(([room, { isPure = false }]) => {
      const line = lines.find((text) => text.includes(`\`${room}/\``))
      return { room, isPure: line && line.split(':')[0]!.includes('(pure)') === isPure }
    }),
  )
  expect(shown.filter(({ isPure }) => !isPure)).toEqual([])
})

test('a session has eight steps', () => {
  expect(section('A session in eight steps').match(/^\d\. \*\*/gm)).toHaveLength(8)
})

test('every invariant names a test', () => {
  const stated = [
    ...section('Invariants')
      .split(/^\d\. /m)
      .slice(1),
    ...section('Code map')
      .split('**Invariant:**')
      .slice(1)
      .map((text) => text.split('\n\n')[0]!),
  ]
  expect(stated.length).toBe(12)
  expect(stated.filter((text) => !/\]\(\.\.\/test\/[\w/-]+(\.test\.ts)?\)/.test(text))).toEqual([])
})
