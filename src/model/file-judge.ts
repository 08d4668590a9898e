/** What the rules for files say of one operation, pure. */
import { extensionKey, type FileDirection, type FileRule } from './file-rules.ts'
import { matches, matchesAllBelow, matchesEverything, mayMatchBelow, type Path } from './path-pattern.ts'

export class FileJudge {
  readonly #rules: readonly FileRule[]
  /** Whether a size can make a difference. */
  readonly asksSize: boolean
  /** Whether it can make a difference where a file lies. */
  readonly asksPath: boolean

  constructor(rules: readonly FileRule[]) {
    this.#rules = rules
    this.asksSize = rules.some(({ size }) => size !== undefined)
    this.asksPath = rules.some(({ pattern }) => !matchesEverything(pattern))
  }

  get isEmpty(): boolean {
    return this.#rules.length === 0
  }

  /** The rule that forbids it; undefined: allowed. `size`: bytes of the content that moves, 0 where none does. */
  forbids(direction: FileDirection, path: Path, size = 0): FileRule | undefined {
    const first = this.#rules.find(
      (rule) =>
        covers(rule, direction) &&
        (rule.size === undefined || size <= rule.size.bytes === (rule.size.operator === '<=')) &&
        hasExtension(rule, path) &&
        matches(rule.pattern, path),
    )
    return first?.action === 'deny' ? first : undefined
  }

  /** A rule that may forbid something below a folder; undefined: there is none. */
  forbidsBelow(direction: FileDirection, folder: Path): FileRule | undefined {
    for (const rule of this.#rules) {
      if (!covers(rule, direction) || !mayMatchBelow(rule.pattern, folder)) continue
      if (rule.action === 'deny') return rule
      if (!rule.size && !rule.extensions && matchesAllBelow(rule.pattern, folder)) return undefined
    }
    return undefined
  }
}

function covers(rule: FileRule, direction: FileDirection): boolean {
  return rule.direction === 'any' || rule.direction === direction
}

/** Windows drops dots and spaces at the end of a name, so they do not hide an extension. */
function hasExtension({ extensions }: FileRule, path: Path): boolean {
  if (extensions === undefined) return true
  const name = extensionKey(path.at(-1) ?? '')
  let end = name.length
  while (end > 0 && '. '.includes(name[end - 1]!)) end--
  return extensions.some((extension) => name.endsWith(`.${extension}`, end))
}
