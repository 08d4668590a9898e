/** Parses tokens to a syntax tree, by recursive descent; its depth is limited by `MAX_DEPTH`. */
import {
  type Comparison,
  type Expression,
  MAX_COMPARISONS,
  MAX_DEPTH,
  MAX_PATTERNS,
  MAX_WILDCARDS,
  type Operator,
  ORDER,
  type Piece,
  SearchError,
} from './grammar.ts'
import { shown, type Token, tokens } from './lexer.ts'

const FIELD = /^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$/i

/** @throws SearchError with the first place that does not match the grammar */
export function parse(text: string): Expression {
  const parser = new Parser(text)
  const expression = parser.expression(0)
  parser.finish()
  return expression
}

class Parser {
  readonly #text: string
  readonly #tokens: Token[]
  #next = 0
  #comparisons = 0
  #patterns = 0

  constructor(text: string) {
    this.#text = text
    this.#tokens = tokens(text)
  }

  expression(depth: number): Expression {
    return this.#joined('or', '||', () => this.#joined('and', '&&', () => this.#condition(depth)))
  }

  finish(): void {
    if (this.#peek().type !== 'end') throw this.#expected('"&&", "||" or the end')
  }

  #joined(type: 'and' | 'or', operator: '&&' | '||', operand: () => Expression): Expression {
    const first = operand()
    const terms = [first]
    while (this.#accept(operator)) terms.push(operand())
    return terms.length === 1 ? first : { type, terms }
  }

  #condition(depth: number): Expression {
    const open = this.#peek()
    if (!this.#accept('(')) return this.#comparison()
    if (depth >= MAX_DEPTH)
      throw new SearchError('form', open.from, `at most ${MAX_DEPTH} parentheses in one another`, 'one more')
    const inner = this.expression(depth + 1)
    if (!this.#accept(')')) throw this.#expected('"&&", "||" or ")"')
    return inner
  }

  #comparison(): Comparison {
    const token = this.#peek()
    const field = this.#text.slice(token.from, token.to)
    if (token.type !== 'word' || !FIELD.test(field)) throw this.#expected('the name of a field, or "("')
    this.#comparisons += 1
    if (this.#comparisons > MAX_COMPARISONS)
      throw new SearchError('form', token.from, `at most ${MAX_COMPARISONS} comparisons`, 'one more')
    this.#next += 1
    const sign = this.#peek()
    if (!isOperator(sign.type)) throw this.#expected('"=", "~", "<", "<=", ">" or ">=" after the field')
    if (sign.type === '~') this.#patterns += 1
    if (this.#patterns > MAX_PATTERNS)
      throw new SearchError('form', sign.from, `at most ${MAX_PATTERNS} comparisons with "~"`, 'one more')
    this.#next += 1
    const at = { field: token.from, operator: sign.from, value: this.#peek().from }
    return { type: 'comparison', field, operator: sign.type, value: this.#value(sign.type), at }
  }

  #value(operator: Operator): Piece[] {
    const pieces: Piece[] = []
    let token = this.#peek()
    const { from } = token
    if (!('pieces' in token)) throw this.#expected('a value')
    for (let end = from; 'pieces' in token && token.from === end; token = this.#peek()) {
      for (const piece of token.pieces) append(pieces, literalIn(piece, operator))
      end = token.to
      this.#next += 1
    }
    if (pieces.filter(({ type }) => type === 'wildcard').length > MAX_WILDCARDS)
      throw new SearchError('form', from, `at most ${MAX_WILDCARDS} wildcards in a value`, 'more')
    return pieces
  }

  #peek(): Token {
    return this.#tokens[this.#next]!
  }

  #accept(type: Token['type']): boolean {
    if (this.#peek().type !== type) return false
    this.#next += 1
    return true
  }

  #expected(what: string): SearchError {
    const token = this.#peek()
    return new SearchError('form', token.from, what, shown(this.#text, token))
  }
}

function isOperator(type: Token['type']): type is Operator {
  return type === '=' || type === '~' || (ORDER as readonly string[]).includes(type)
}

/** Returns the piece as literal text: only `~` has wildcards. */
function literalIn(piece: Piece, operator: Operator): Piece {
  return piece.type === 'wildcard' && operator !== '~' ? { type: 'text', text: '*' } : piece
}

function append(pieces: Piece[], piece: Piece): void {
  const last = pieces.at(-1)
  if (last?.type === 'text' && piece.type === 'text') {
    pieces[pieces.length - 1] = { type: 'text', text: last.text + piece.text }
  } else if (!(last?.type === 'wildcard' && piece.type === 'wildcard')) pieces.push(piece)
}
