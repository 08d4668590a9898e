import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './imports.ts'

const TREES = ['src', 'proxies', 'recordings', 'test', 'bin']
const OWN = 'test/architecture/words.test.ts'
/** The words that a comment must not use, each with its replacement (CONTRIBUTING.md, Words). */
const RULES: readonly { pattern: RegExp; instead: string }[] = [
  {
    pattern: /(^|[.;:] )(who|whoever|whom|whose|what|whatever|somebody|nobody|anybody|everybody)\b/i,
    instead: 'begin with the verb or the noun',
  },
  {
    pattern: /\b(somebody|nobody|anybody|whoever|whomever)\b/i,
    instead: 'name the client, the user, the caller',
  },
  { pattern: /\b(undefined|null|false|true): /i, instead: '"Returns X, or undefined if Y"' },
  { pattern: /\b(is|are|was) told (of|that)\b|\btells of\b/i, instead: 'report, log' },
  { pattern: /\banswers with\b/i, instead: 'returns' },
  { pattern: /\b(pass|passes|passed) on\b/i, instead: 'forward' },
  { pattern: /\b(is|are|was|be) over\b/i, instead: 'expired, closed, ended' },
  {
    pattern:
      /(?<!\b(of|about|on|from|to|in|with|by|for) )\bwho (is|are|was|were|has|have|may|does|do|can|could|would|will)\b(?<=(^|[,;:.] )who \w+)/i,
    instead: 'the user that, a client that',
  },
]

interface Comment {
  place: string
  text: string
}

/** Returns the comments of a file; the lines of one, joined. */
function commentsOf(path: string): Comment[] {
  const comments: Comment[] = []
  let open: Comment | undefined
  readFileSync(join(ROOT, path), 'utf8')
    .split('\n')
    .forEach((line, index) => {
      const [, block] = /^\s*\/\*\*?(.*)$/.exec(line) ?? []
      const [, next] = open ? (/^\s*\*? ?(.*)$/.exec(line) ?? []) : []
      const [, single] = /^\s*\/\/ (.*)$/.exec(line) ?? []
      if (block !== undefined) open = { place: `${path}:${index + 1}`, text: '' }
      const text = block ?? next
      if (open && text !== undefined) {
        open.text = `${open.text} ${text.replace('*/', '')}`.trim()
        if (text.includes('*/')) {
          comments.push(open)
          open = undefined
        }
      } else if (single !== undefined) {
        const last = comments.at(-1)
        if (last && last.place === `${path}:${index}`) {
          last.text += ` ${single}`
          last.place = `${path}:${index + 1}`
        } else comments.push({ place: `${path}:${index + 1}`, text: single })
      }
    })
  return comments
}

test('comments keep to the words of CONTRIBUTING.md', () => {
  const files = TREES.flatMap((tree) =>
    readdirSync(join(ROOT, tree), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|mjs)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length)),
  ).filter((path) => path !== OWN)
  const found = files
    .flatMap(commentsOf)
    .flatMap(({ place, text }) =>
      RULES.filter(({ pattern }) => pattern.test(text)).map(
        ({ instead }) => `${place} (${instead}): ${text}`,
      ),
    )
  const only = process.env['WORDS']
  const shown = only === undefined ? found : found.filter((one) => one.startsWith(only))
  expect(shown.join('\n')).toBe('')
})
