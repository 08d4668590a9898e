/**
 * A connection policy's rules for files (SFTP and SCP): `ACTION DIRECTION PATTERN [CONDITION…]`, one text per
 * rule. The first rule that matches decides; if none matches, the operation is allowed. docs/api.md describes
 * the language for administrators.
 */
import { extensionKey } from './file-names.ts'
import type { FileRule } from './file-rule.ts'
import { type PathPattern, parsePattern } from './path-pattern.ts'

export const MAX_FILE_RULES = 100
export const MAX_FILE_RULE_LENGTH = 512
const MAX_EXTENSIONS = 32

/** A rule could not be parsed. */
export class FileRuleError extends Error {
  override name = 'FileRuleError'
  /** Characters before the fault. */
  readonly position: number

  constructor(position: number, expected: string, found: string) {
    super(`at offset ${position}: expected ${expected}, found ${found}`)
    this.position = position
  }
}

interface Word {
  text: string
  at: number
}

/** @throws FileRuleError */
export function parseFileRule(text: string): FileRule {
  if (text.length > MAX_FILE_RULE_LENGTH)
    throw new FileRuleError(
      MAX_FILE_RULE_LENGTH,
      `at most ${MAX_FILE_RULE_LENGTH} characters`,
      `${text.length}`,
    )
  const [action, direction, pattern, ...conditions] = wordsOf(text)
  const rule: FileRule = {
    text,
    action: oneOf(['allow', 'deny'], action, text),
    direction: oneOf(['up', 'down', 'any'], direction, text),
    pattern: patternOf(pattern, text),
  }
  for (const condition of conditions) addCondition(rule, condition)
  return rule
}

/** Splits at single or several spaces; a backslash keeps the space behind it. */
function wordsOf(text: string): Word[] {
  const words: Word[] = []
  for (const match of text.matchAll(/(?:\\.|[^ \\]|\\$)+/gsu)) words.push({ text: match[0], at: match.index })
  return words
}

function oneOf<T extends string>(known: readonly T[], word: Word | undefined, text: string): T {
  const found = known.find((name) => name === word?.text)
  if (found !== undefined) return found
  throw new FileRuleError(word?.at ?? text.length, known.join(' or '), shown(word))
}

function shown(word: Word | undefined): string {
  return word === undefined ? 'the end' : JSON.stringify(word.text)
}

function patternOf(word: Word | undefined, text: string): PathPattern {
  const what = 'a path pattern such as /srv/in/**'
  if (word === undefined) throw new FileRuleError(text.length, what, 'the end')
  const parsed = parsePattern(word.text)
  if ('expected' in parsed) throw new FileRuleError(word.at + parsed.at, parsed.expected, parsed.found)
  return parsed
}

const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}

function addCondition(rule: FileRule, { text, at }: Word): void {
  const [, name, operator, value = ''] = /^([a-z]+)(<=|>|=)(.*)$/su.exec(text) ?? []
  const begin = at + text.length - value.length
  if (name === 'size' && (operator === '<=' || operator === '>')) {
    if (rule.size) throw new FileRuleError(at, 'one size', 'another')
    const [, digits, unit = 'B'] = /^(\d{1,9})(B|KiB|MiB|GiB|TiB)$/u.exec(value) ?? []
    if (digits === undefined)
      throw new FileRuleError(begin, 'a size such as 512B, 64KiB, 10MiB or 1GiB', JSON.stringify(value))
    rule.size = { operator, bytes: Number(digits) * UNITS[unit]! }
  } else if (name === 'ext' && operator === '=') {
    if (rule.extensions) throw new FileRuleError(at, 'one ext', 'another')
    rule.extensions = extensionsOf(value, begin)
  } else {
    throw new FileRuleError(at, 'size<=SIZE, size>SIZE or ext=NAME,NAME', JSON.stringify(text))
  }
}

function extensionsOf(value: string, begin: number): string[] {
  const names = value.split(',')
  let at = begin
  for (const name of names) {
    if (!/^[\p{L}\p{N}_+-]+(\.[\p{L}\p{N}_+-]+)*$/u.test(name))
      throw new FileRuleError(at, 'extensions such as exe,tar.gz', JSON.stringify(name))
    at += name.length + 1
  }
  if (names.length > MAX_EXTENSIONS)
    throw new FileRuleError(begin, `at most ${MAX_EXTENSIONS} extensions`, `${names.length}`)
  return names.map(extensionKey)
}
