/** The search grammar that every collection shares, and its syntax tree. */

/** The grammar as in the reference. A variable's value is only ever text. */
export const GRAMMAR = `expression  = conjunction { "||" conjunction }
conjunction = condition { "&&" condition }
condition   = "(" expression ")" | field operator value
operator    = "=" | "~" | "<" | "<=" | ">" | ">="
field       = name { "." name }
value       = piece { piece }                       no white space between them
piece       = word | quoted | "\${" name "}"
word        = characters, but no white space and none of ( ) " ' = ~ & | ! < >
quoted      = '"' { character | '\\"' | '\\\\' | '\\*' } '"'
name        = letter { letter | digit | "_" }`

/** Characters of an expression. */
export const MAX_EXPRESSION = 4096
/** Parentheses within parentheses. */
export const MAX_DEPTH = 16
/** Comparisons in an expression: each of them may have to read every object of a collection. */
export const MAX_COMPARISONS = 32
/** Comparisons with `~` in an expression: no index speeds them up. */
export const MAX_PATTERNS = 8
/** Wildcards in one value. */
export const MAX_WILDCARDS = 8

/** Operators for integers and times. */
export const ORDER = ['<', '<=', '>', '>='] as const
export type Order = (typeof ORDER)[number]
export type Operator = '=' | '~' | Order

export type Piece =
  | { type: 'text'; text: string }
  /** Any text, the empty one too. */
  | { type: 'wildcard' }
  | { type: 'variable'; name: string }

export interface Comparison {
  type: 'comparison'
  field: string
  operator: Operator
  /** Never two texts in a row; empty for `""`. */
  value: Piece[]
  /** Offsets in the expression, for errors found after parsing. */
  at: { field: number; operator: number; value: number }
}

export type Expression =
  | Comparison
  /** Two or more. */
  | { type: 'and' | 'or'; terms: Expression[] }

/** Fault of an expression: in its form, in a field's name, or in the value for a field. */
export type SearchFault = 'form' | 'field' | 'value'

/** The only error of this folder. */
export class SearchError extends Error {
  override readonly name = 'SearchError'
  readonly fault: SearchFault
  /** Offset in the expression, in characters (UTF-16 units) from 0. */
  readonly position: number
  readonly expected: string
  readonly found: string

  constructor(fault: SearchFault, position: number, expected: string, found: string) {
    super(`at offset ${position}: expected ${expected}, found ${found}`)
    this.fault = fault
    this.position = position
    this.expected = expected
    this.found = found
  }
}
