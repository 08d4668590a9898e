// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the grammar look like that
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Expression,
  MAX_COMPARISONS,
  MAX_DEPTH,
  MAX_EXPRESSION,
  MAX_PATTERNS,
  MAX_WILDCARDS,
  ORDER,
  SearchError,
} from '../../src/search/grammar.ts'
import { parse } from '../../src/search/parser.ts'
import { bare, expressions, format } from './arbitrary.ts'

const text = (value: string) => ({ type: 'text', text: value })
const wildcard = { type: 'wildcard' }
const is = (field: string, value: string) => ({
  type: 'comparison',
  field,
  operator: '=',
  value: value === '' ? [] : [text(value)],
})
const parsed = (source: string) => bare(parse(source))
const value = (source: string) => (parse(`a${source}`) as Extract<Expression, { type: 'comparison' }>).value

describe('an expression', () => {
  it('binds && tighter than ||, and parentheses tighter than both', () => {
    const [a, b, c] = [is('a', '1'), is('b', '2'), is('c', '3')]
    expect(parsed('a=1 || b=2 && c=3')).toEqual({ type: 'or', terms: [a, { type: 'and', terms: [b, c] }] })
    expect(parsed('a=1 && b=2 || c=3')).toEqual({ type: 'or', terms: [{ type: 'and', terms: [a, b] }, c] })
    expect(parsed('(a=1||b=2)&&c=3')).toEqual({ type: 'and', terms: [{ type: 'or', terms: [a, b] }, c] })
    expect(parsed('a=1&&b=2&&c=3')).toEqual({ type: 'and', terms: [a, b, c] })
    expect(parsed('((a=1))')).toEqual(a)
  })

  it('takes white space anywhere but within a word', () => {
    expect(parsed(' \t( a\n= 1 )\r\n&& b =2 ')).toEqual(parsed('(a=1)&&b=2'))
  })

  it('reads the longest operator that stands there', () => {
    for (const operator of ORDER)
      expect(parsed(`port${operator}22`)).toEqual({ ...is('port', '22'), operator })
    expect(value('>2031*')).toEqual([text('2031*')])
  })

  it('names fields within fields with a dot', () => {
    expect(parsed('session.accounts=x')).toEqual(is('session.accounts', 'x'))
  })

  it('reads words, quotes and variables as one value where they touch', () => {
    expect(value('=root@local:srv1:ssh')).toEqual([text('root@local:srv1:ssh')])
    expect(value('="a b"')).toEqual([text('a b')])
    expect(value('="&& ( \\" \\\\ \\* ${user}"')).toEqual([text('&& ( " \\ * ${user}')])
    expect(value('=""')).toEqual([])
    expect(value('=${user}@"my corp"')).toEqual([{ type: 'variable', name: 'user' }, text('@my corp')])
    expect(value('=SRV1$')).toEqual([text('SRV1$')])
    expect(value('=2031-12-31T23:59:59+01:00')).toEqual([text('2031-12-31T23:59:59+01:00')])
  })

  it('has wildcards after ~ only, and none that is escaped', () => {
    expect(value('~srv*')).toEqual([text('srv'), wildcard])
    expect(value('~"a b*"c')).toEqual([text('a b'), wildcard, text('c')])
    expect(value('~"50\\*"*')).toEqual([text('50*'), wildcard])
    expect(value('~**')).toEqual([wildcard])
    expect(value('=a*b"*"')).toEqual([text('a*b*')])
  })
})

describe('a bad expression', () => {
  it.each([
    ['', 0, 'the name of a field, or "("', 'the end'],
    ['a<>1', 2, 'a value', '">"'],
    ['a=<1', 2, 'a value', '"<"'],
    ['a<=', 3, 'a value', 'the end'],
    ['srv1', 4, '"=", "~", "<", "<=", ">" or ">=" after the field', 'the end'],
    ['a=1 &&', 6, 'the name of a field, or "("', 'the end'],
    ['a=1 & b=2', 4, 'a field, a value, "=", "~", "<", ">", "&&", "||" or parentheses', '"&"'],
    ['a=1 b=2', 4, '"&&", "||" or the end', '"b"'],
    ['a==1', 2, 'a value', '"="'],
    ['a!=1', 1, 'a field, a value', '"!"'],
    ['a=', 2, 'a value', 'the end'],
    ['a= && b=1', 3, 'a value', '"&&"'],
    ['=1', 0, 'the name of a field, or "("', '"="'],
    ['9a=1', 0, 'the name of a field, or "("', '"9a"'],
    ['"a"=1', 0, 'the name of a field, or "("', '"\\"a\\""'],
    ['(a=1', 4, '"&&", "||" or ")"', 'the end'],
    ['a=1)', 3, '"&&", "||" or the end', '")"'],
    ['()', 1, 'the name of a field, or "("', '")"'],
    ['a="x', 4, 'a closing "', 'the end'],
    ['a="x\\', 5, 'a closing "', 'the end'],
    ['a="x\\n"', 5, '\\", \\\\ or \\* in quotes', '"\\n"'],
    ["a='x'", 2, 'in double quotes', '"\'"'],
    ['a=${', 2, 'a variable such as ${user}', '"${"'],
    ['a=${1}', 2, 'a variable such as ${user}', '"${1}"'],
    ['a=x\0y', 3, 'a printable character', 'a control character'],
    ['a=x\ud800', 3, 'a printable character', 'a control character'],
    [`a=${'x'.repeat(100)} b`, 103, 'the end', '"b"'],
    [`${'y'.repeat(100)}`, 100, '"=", "~"', 'the end'],
  ])('%j is refused at its place', (source, position, expected, found) => {
    const error = faultOf(source)
    expect(error).toMatchObject({ position, found: found.replaceAll('\\"', '"') })
    expect(error.expected).toContain(expected)
    expect(error.message).toBe(`at offset ${position}: expected ${error.expected}, found ${error.found}`)
  })

  it('is one beyond a limit, and up to the limit it is none', () => {
    const comparisons = (count: number) => Array.from({ length: count }, () => 'a=1').join('||')
    const patterns = (count: number) => Array.from({ length: count }, () => 'a~1').join('||')
    const deep = (depth: number) => `${'('.repeat(depth)}a=1${')'.repeat(depth)}`
    const stars = (count: number) => `a~${'x*'.repeat(count)}`
    const long = (length: number) => `a=${'x'.repeat(length - 2)}`
    for (const [make, limit] of [
      [comparisons, MAX_COMPARISONS],
      [patterns, MAX_PATTERNS],
      [deep, MAX_DEPTH],
      [stars, MAX_WILDCARDS],
      [long, MAX_EXPRESSION],
    ] as const) {
      expect(() => parse(make(limit))).not.toThrow()
      expect(faultOf(make(limit + 1)).expected).toContain(`at most ${limit}`)
    }
    // Far beyond the limit, no other error comes first.
    expect(faultOf('('.repeat(MAX_EXPRESSION)).expected).toContain('at most')
  })
})

const names = ['a', 'user_name', 'session.accounts', 'B2']
const anyText = fc
  .string({ unit: 'binary', maxLength: 12 })
  .filter((one) => !/[\0-\x08\x0e-\x1f\x7f\p{Cs}]/u.test(one))

it('parse(format(tree)) is the tree', () => {
  const trees = expressions({
    fields: names,
    texts: () => anyText,
    variables: ['user', 'client_ip'],
    operators: () => ['=', '~', ...ORDER],
  })
  fc.assert(
    fc.property(trees, (tree) => {
      const source = format(tree)
      fc.pre(
        source.length <= MAX_EXPRESSION &&
          source.split(/[=~<>]/).length <= MAX_COMPARISONS &&
          source.split('~').length <= MAX_PATTERNS,
      )
      expect(bare(parse(source))).toEqual(bare(tree))
    }),
    { numRuns: 500 },
  )
})

it('any text is parsed or refused by the one error, at a place within it', () => {
  const token = fc.constantFrom(
    ...'()"=~&|$ {}\\*\'!<>'.split(''),
    '&&',
    '||',
    'a',
    'a=1',
    '${user}',
    '""',
    ' ',
  )
  const source = fc.oneof(
    fc.array(token, { maxLength: 40 }).map((tokens) => tokens.join('')),
    fc.string({ unit: 'binary', maxLength: 60 }),
  )
  fc.assert(
    fc.property(source, (one) => {
      try {
        parse(one)
      } catch (error) {
        if (!(error instanceof SearchError)) throw error
        expect(error.position).toBeGreaterThanOrEqual(0)
        expect(error.position).toBeLessThanOrEqual(one.length)
      }
    }),
    { numRuns: 5000 },
  )
})

function faultOf(source: string): SearchError {
  try {
    parse(source)
  } catch (error) {
    if (error instanceof SearchError) return error
    throw error
  }
  throw new Error(`${source} was taken`)
}
