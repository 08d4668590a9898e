/** Splits text into tokens of the search grammar. */
import { MAX_EXPRESSION, type Operator, type Piece, SearchError } from './grammar.ts'

export type Token =
  | { type: '(' | ')' | '&&' | '||' | Operator | 'end'; from: number; to: number }
  /** A part of a value; a word may also be a field's name. */
  | { type: 'word' | 'quoted' | 'variable'; from: number; to: number; pieces: Piece[] }

const SPACE = /\s*/y
const SYMBOL = /\(|\)|&&|\|\||<=?|>=?|=|~/y
/** A `$` belongs to a word (accounts of Windows machines end in one) unless it opens a variable. */
const WORD = /(?:[^\s()"'=~&|!<>$]|\$(?!\{))+/uy
const VARIABLE = /\$\{([A-Za-z][A-Za-z0-9_]*)\}/y
/**
 * Control characters except white space, and halves of surrogate pairs: SQL would not accept them unchanged.
 */
const FOREIGN = /[\0-\x08\x0e-\x1f\x7f\p{Cs}]/u

/** Returns the tokens, followed by one of type `end`. @throws SearchError */
export function tokens(text: string): Token[] {
  if (text.length > MAX_EXPRESSION)
    throw fault(MAX_EXPRESSION, `at most ${MAX_EXPRESSION} characters`, `${text.length}`)
  const foreign = text.search(FOREIGN)
  if (foreign !== -1) throw fault(foreign, 'a printable character', 'a control character')
  const found: Token[] = []
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const token = tokenAt(text, at)
    found.push(token)
    at = token.to
  }
  found.push({ type: 'end', from: text.length, to: text.length })
  return found
}

/** Returns the text at a place, for errors. */
export function shown(text: string, { from, to }: { from: number; to: number }): string {
  if (from >= text.length) return 'the end'
  const piece = text.slice(from, to)
  return `"${piece.length > 20 ? `${piece.slice(0, 20)}…` : piece}"`
}

function tokenAt(text: string, from: number): Token {
  const symbol = match(SYMBOL, text, from)
  if (symbol) {
    return { type: symbol[0] as '(', from, to: from + symbol[0].length }
  }
  const word = match(WORD, text, from)
  if (word) return { type: 'word', from, to: from + word[0].length, pieces: withWildcards(word[0]) }
  if (text[from] === '"') return quotedAt(text, from)
  if (text[from] === '$') {
    const variable = match(VARIABLE, text, from)
    if (!variable) throw fault(from, `a variable such as \${user}`, shown(text, { from, to: from + 20 }))
    const pieces: Piece[] = [{ type: 'variable', name: variable[1] ?? '' }]
    return { type: 'variable', from, to: from + variable[0].length, pieces }
  }
  const expected =
    'a field, a value, "=", "~", "<", ">", "&&", "||" or parentheses (other characters in double quotes)'
  throw fault(from, expected, shown(text, { from, to: from + 1 }))
}

function quotedAt(text: string, from: number): Token {
  const pieces: Piece[] = []
  let literal = ''
  for (let at = from + 1; at < text.length; at++) {
    const character = text[at]
    if (character === '"') {
      pieces.push(...textPiece(literal))
      return { type: 'quoted', from, to: at + 1, pieces }
    }
    if (character === '*') {
      pieces.push(...textPiece(literal), { type: 'wildcard' })
      literal = ''
    } else if (character === '\\') {
      at += 1
      const escaped = text[at]
      if (escaped === undefined) break
      if (!'"\\*'.includes(escaped)) {
        throw fault(at, '\\", \\\\ or \\* in quotes', shown(text, { from: at - 1, to: at + 1 }))
      }
      literal += escaped
    } else literal += character
  }
  throw fault(text.length, 'a closing "', 'the end')
}

function withWildcards(word: string): Piece[] {
  return word
    .split('*')
    .flatMap((text, index): Piece[] => [
      ...(index === 0 ? [] : [{ type: 'wildcard' } as const]),
      ...textPiece(text),
    ])
}

function textPiece(text: string): Piece[] {
  return text === '' ? [] : [{ type: 'text', text }]
}

function skipSpace(text: string, at: number): number {
  return at + (match(SPACE, text, at)?.[0].length ?? 0)
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function fault(position: number, expected: string, found: string): SearchError {
  return new SearchError('form', position, expected, found)
}
