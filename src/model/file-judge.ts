/** Checks one operation against the rules for files. Pure. */
import { hasExtension, onWindows } from './file-names.ts'
import type { FileDirection, FileRule } from './file-rule.ts'
import { matches, matchesAllBelow, matchesEverything, mayMatchBelow, type Path } from './path-pattern.ts'

export class FileJudge {
  readonly #rules: readonly FileRule[]
  /** Whether a rule depends on the size. */
  readonly asksSize: boolean
  /** Whether a rule depends on the folder of a file. */
  readonly asksPath: boolean
  /** Whether a rule depends on the folder or the name of a file. */
  readonly asksName: boolean
  /** The sizes at which the result of the rules may change. */
  readonly sizes: readonly number[]

  constructor(rules: readonly FileRule[]) {
    this.#rules = rules
    this.asksSize = rules.some(({ size }) => size !== undefined)
    this.asksPath = rules.some(({ pattern }) => !matchesEverything(pattern))
    this.asksName = this.asksPath || rules.some(({ extensions }) => extensions !== undefined)
    this.sizes = [0, ...rules.flatMap(({ size }) => (size === undefined ? [] : [size.bytes + 1]))]
  }

  get isEmpty(): boolean {
    return this.#rules.length === 0
  }

  /**
   * Returns the rule that forbids the operation, or undefined if it is allowed. `size`: bytes of the moved
   * content, 0 if none.
   */
  forbids(direction: FileDirection, path: Path, size = 0): FileRule | undefined {
    for (const reading of onWindows(path)) {
      const first = this.#rules.find(
        (rule) =>
          covers(rule, direction) &&
          (rule.size === undefined || size <= rule.size.bytes === (rule.size.operator === '<=')) &&
          hasExtension(rule, reading) &&
          matches(rule.pattern, reading),
      )
      if (first?.action === 'deny') return first
    }
    return undefined
  }

  /** Returns a rule that may forbid an operation below the folder, or undefined if none does. */
  forbidsBelow(direction: FileDirection, folder: Path): FileRule | undefined {
    for (const reading of onWindows(folder)) {
      const rule = this.#forbidsBelow(direction, reading)
      if (rule !== undefined) return rule
    }
    return undefined
  }

  #forbidsBelow(direction: FileDirection, folder: Path): FileRule | undefined {
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
