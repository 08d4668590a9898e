/** docs/decisions: the list names each page, and each page has its four parts and is short. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from './walks.ts'

const FOLDER = join(ROOT, 'docs', 'decisions')
const MAX_LINES = 25
const PARTS = ['Context', 'Decision', 'Price', 'Measured']

const pages = readdirSync(FOLDER)
  .filter((name) => name !== 'README.md')
  .sort()

const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8')

test('are numbered without a gap', () => {
  const numbers = pages.map((name) => /^(\d{3})-[a-z0-9-]+\.md$/.exec(name)?.[1])
  expect(numbers).toEqual(pages.map((_, index) => String(index + 1).padStart(3, '0')))
})

test('are listed by number, title and page', () => {
  const rows = [...read('README.md').matchAll(/^\| (\d{3}) \| \[(.+)\]\((.+\.md)\) \|$/gm)]
  const listed = rows.map(([, number, title, page]) => ({ page, heading: `# ${number} ${title}` }))
  expect(listed).toEqual(pages.map((page) => ({ page, heading: read(page).split('\n')[0] })))
})

describe.each(pages)('%s', (name) => {
  test('has context, decision, price and what was measured, in this order', () => {
    const parts = [...read(name).matchAll(/^\*\*(\w+)\.\*\* \S/gm)].map((match) => match[1])
    expect(parts).toEqual(PARTS)
  })

  test('is short', () => {
    expect(read(name).trimEnd().split('\n').length).toBeLessThanOrEqual(MAX_LINES)
  })
})
