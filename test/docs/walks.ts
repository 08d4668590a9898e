/** Walks through a page: its shell blocks behind `<!-- walk: NAME -->`, and its files behind `<!-- file: NAME -->`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '..', '..')

/** Returns the blocks in order. `page`: its path in the clone. */
export function walkOf(page: string): { name: string; text: string }[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  return [...text.matchAll(/<!-- walk: (\w+) -->\n```sh\n([\s\S]*?)```/g)].map((match) => ({
    name: match[1]!,
    text: match[2]!,
  }))
}

/** Returns the files in order; several blocks may be of one file. */
export function filesOf(page: string): { name: string; text: string }[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  return [...text.matchAll(/<!-- file: (\S+) -->\n```\w+\n([\s\S]*?)```/g)].map((match) => ({
    name: match[1]!,
    text: match[2]!,
  }))
}

/** Replaces texts that depend on the reader's machine; each must occur, or the page has changed. */
export function adapt(text: string, choices: Record<string, string>): string {
  let adapted = text
  for (const [from, to] of Object.entries(choices)) {
    if (!adapted.includes(from)) throw new Error(`the walk does not have ${JSON.stringify(from)} any more`)
    adapted = adapted.replaceAll(from, to)
  }
  return adapted
}
