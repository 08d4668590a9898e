/** The pages' links within the clone have a target, and the files that they name exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from './walks.ts'

const inFolder = (folder: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))

const pages = [...readdirSync(ROOT).filter((name) => name.endsWith('.md')), ...inFolder('docs')].sort()

/** Reads a page without its code blocks, in which brackets and headings have another meaning. */
const read = (page: string) => readFileSync(join(ROOT, page), 'utf8').replace(/^```[\s\S]*?^```$/gm, '')

/** Returns the anchors of a page's headings, by GitHub's rules. */
function anchorsOf(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map((match) =>
    match[1]!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

describe.each(pages)('%s', (page) => {
  const text = read(page)

  test('links to files and headings that are there', () => {
    const broken = [...text.matchAll(/\]\(([^)\s]*)\)/g)]
      .map((match) => match[1]!)
      .filter((link) => !/^\w+:/.test(link))
      .filter((link) => {
        const [path = '', anchor] = link.split('#')
        const file = path === '' ? page : join(dirname(page), path)
        if (!existsSync(join(ROOT, file))) return true
        return anchor !== undefined && !anchorsOf(file).includes(anchor)
      })
    expect(broken).toEqual([])
  })

  test('names files and folders of the code that are there', () => {
    const named = [...text.matchAll(/`((?:src|proxies|recordings|test|bin|config|patches|docs)\/[\w./-]*)`/g)]
    expect(named.map((match) => match[1]!).filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })
})
