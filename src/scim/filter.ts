/**
 * Filters (RFC 7644 section 3.4.2.2) and the paths of PATCH (section 3.5.2), read from the left to the right in linear time.
 * Length and nesting are limited; names of attributes are resolved by the schema later.
 */
import { badRequest } from './error.ts'

/** Characters of a filter or path. */
export const MAX_FILTER = 4096
/** Limit of nested parentheses, brackets and `not`. */
export const MAX_NESTING = 16

const OPERATORS = ['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le'] as const
export type Operator = (typeof OPERATORS)[number]
export type Literal = string | number | boolean | null

export type Filter =
  | { kind: 'and'; of: Filter[] }
  | { kind: 'or'; of: Filter[] }
  | { kind: 'not'; of: Filter }
  | { kind: 'compare'; path: string; operator: Operator; value: Literal }
  | { kind: 'present'; path: string }
  /** `emails[type eq "work"]`, and `emails[type eq "work"].value eq "x"` with `about` the part `value`. */
  | { kind: 'value'; path: string; of: Filter; about?: Filter }

/** The target of a PATCH operation: `name.familyName`, `emails[type eq "work"].value`. */
export interface PatchPath {
  path: string
  filter?: Filter
  /** Part behind the brackets. */
  part?: string
}

type Token =
  | { kind: 'mark'; text: '(' | ')' | '[' | ']' | '.' }
  | { kind: 'word'; text: string }
  | { kind: 'literal'; value: Literal }

const WORD = /[A-Za-z$][A-Za-z0-9_$:-]*(?:\.[A-Za-z0-9_$][A-Za-z0-9_$:-]*)*/y
const NUMBER = /-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?/y
const STRING = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y

/** @throws ScimError `invalidFilter` */
export function parseFilter(text: string): Filter {
  const reader = new Reader(text, 'invalidFilter')
  const filter = reader.either(0)
  reader.requireEnd()
  return filter
}

/** @throws ScimError `invalidPath`, or `invalidFilter` for what stands in the brackets */
export function parsePath(text: string): PatchPath {
  const reader = new Reader(text, 'invalidPath')
  const path = reader.patchPath()
  reader.requireEnd()
  return path
}

class Reader {
  readonly #fault: 'invalidFilter' | 'invalidPath'
  readonly #tokens: Token[]
  #at = 0

  constructor(text: string, fault: 'invalidFilter' | 'invalidPath') {
    this.#fault = fault
    if (text.length > MAX_FILTER)
      throw badRequest(fault, `expected ${MAX_FILTER} characters at most, got ${text.length}`)
    this.#tokens = this.#tokensOf(text)
  }

  patchPath(): PatchPath {
    const path = this.#word('a path begins with the name of an attribute')
    if (!this.#skip('[')) return { path }
    const filter = this.either(1)
    this.#require(']')
    return { path, filter, ...(this.#skip('.') && { part: this.#word('a part follows "."') }) }
  }

  either(depth: number): Filter {
    const of = [this.#both(depth)]
    while (this.#skipWord('or')) of.push(this.#both(depth))
    return of.length === 1 ? of[0]! : { kind: 'or', of }
  }

  requireEnd(): void {
    const token = this.#tokens[this.#at]
    if (token) throw this.#error(`expected the end, got ${shown(token)}`)
  }

  #both(depth: number): Filter {
    const of = [this.#one(depth)]
    while (this.#skipWord('and')) of.push(this.#one(depth))
    return of.length === 1 ? of[0]! : { kind: 'and', of }
  }

  #one(depth: number): Filter {
    if (depth > MAX_NESTING) throw this.#error(`expected ${MAX_NESTING} levels at most; nest less`)
    if (this.#skip('(')) {
      const inner = this.either(depth + 1)
      this.#require(')')
      return inner
    }
    const next = this.#tokens[this.#at + 1]
    // `not` is no reserved word: an attribute may have that name.
    if (next?.kind === 'mark' && next.text === '(' && this.#skipWord('not')) {
      this.#require('(')
      const of = this.either(depth + 1)
      this.#require(')')
      return { kind: 'not', of }
    }
    const path = this.#word('expected an attribute, "not (" or "("')
    if (!this.#skip('[')) return this.#comparison(path)
    const of = this.either(depth + 1)
    this.#require(']')
    if (!this.#skip('.')) return { kind: 'value', path, of }
    return { kind: 'value', path, of, about: this.#comparison(this.#word('a part follows "."')) }
  }

  #comparison(path: string): Filter {
    const word = this.#word(`expected an operator behind ${path}`).toLowerCase()
    if (word === 'pr') return { kind: 'present', path }
    const operator = OPERATORS.find((one) => one === word)
    if (!operator) throw this.#error(`expected one of ${OPERATORS.join(', ')} and pr, got ${shownText(word)}`)
    const token = this.#tokens[this.#at++]
    if (token?.kind !== 'literal')
      throw this.#error(
        `expected a value behind ${operator}, got ${shown(token)}; texts stand in double quotes`,
      )
    return { kind: 'compare', path, operator, value: token.value }
  }

  #word(fault: string): string {
    const token = this.#tokens[this.#at++]
    if (token?.kind !== 'word') throw this.#error(`${fault}, got ${shown(token)}`)
    return token.text
  }

  #skipWord(word: string): boolean {
    const token = this.#tokens[this.#at]
    const isThere = token?.kind === 'word' && token.text.toLowerCase() === word
    if (isThere) this.#at += 1
    return isThere
  }

  #skip(mark: string): boolean {
    const token = this.#tokens[this.#at]
    const isThere = token?.kind === 'mark' && token.text === mark
    if (isThere) this.#at += 1
    return isThere
  }

  #require(mark: string): void {
    if (!this.#skip(mark)) throw this.#error(`expected "${mark}", got ${shown(this.#tokens[this.#at])}`)
  }

  #tokensOf(text: string): Token[] {
    const tokens: Token[] = []
    for (let at = 0; at < text.length; ) {
      const character = text[at]!
      if (character === ' ') at += 1
      else if ('()[].'.includes(character)) {
        tokens.push({ kind: 'mark', text: character as '(' })
        at += 1
      } else {
        const { token, end } = this.#tokenAt(text, at)
        tokens.push(token)
        at = end
      }
    }
    return tokens
  }

  #tokenAt(text: string, at: number): { token: Token; end: number } {
    const [string, number, word] = [STRING, NUMBER, WORD].map((pattern) => {
      pattern.lastIndex = at
      return pattern.exec(text)?.[0]
    })
    if (string !== undefined)
      return { token: { kind: 'literal', value: this.#stringOf(string) }, end: at + string.length }
    if (number !== undefined)
      return { token: { kind: 'literal', value: Number(number) }, end: at + number.length }
    if (word === undefined) throw this.#error(`got ${shownText(text.slice(at))} at character ${at + 1}`)
    const key = word.toLowerCase()
    const named = key === 'true' ? true : key === 'false' ? false : key === 'null' ? null : undefined
    const token: Token =
      named === undefined ? { kind: 'word', text: word } : { kind: 'literal', value: named }
    return { token, end: at + word.length }
  }

  /** Texts are those of JSON. */
  #stringOf(quoted: string): string {
    try {
      return JSON.parse(quoted) as string
    } catch {
      throw this.#error(`expected a text as in JSON, got ${shownText(quoted)}`)
    }
  }

  #error(message: string) {
    return badRequest(this.#fault, message)
  }
}

const shown = (token: Token | undefined): string => {
  if (!token) return 'the end'
  return token.kind === 'literal' ? shownText(JSON.stringify(token.value)) : shownText(token.text)
}

const shownText = (text: string): string => (text.length > 40 ? `${text.slice(0, 39)}…` : text)
