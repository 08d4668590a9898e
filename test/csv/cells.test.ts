import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cellOf, type Kind, type Value, valueIn } from '../../src/csv/cells.ts'
import { CellError } from '../../src/csv/error.ts'

const anyText = fc.string({ unit: fc.constantFrom(...'=+-@\t\r\n\'"|\\;, ax9é＝𝒳') })

function reread(kind: Kind, value: Value): Value | undefined {
  return valueIn(kind, cellOf(kind, value))
}

describe('a value comes back from its cell as it was', () => {
  it('texts', () => {
    fc.assert(fc.property(anyText, (text) => reread('text', text) === text))
  })
  it('lists', () => {
    const lists = fc.array(anyText).filter((list) => list.length !== 1 || list[0] !== '')
    fc.assert(fc.property(lists, (list) => void expect(reread('list', list)).toEqual(list)))
  })
  it('numbers, booleans, times', () => {
    fc.assert(fc.property(fc.integer({ min: -1e8, max: 1e8 }), (n) => reread('integer', n) === n))
    expect([reread('boolean', true), reread('boolean', false)]).toEqual([true, false])
    const times = fc.date({ min: new Date(0), max: new Date('9999-01-01'), noInvalidDate: true })
    fc.assert(fc.property(times, (time) => reread('time', time.toISOString()) === time.toISOString()))
    expect(reread('time', null)).toBeNull()
  })
})

describe('formulas', () => {
  it('no cell that is written begins like one', () => {
    fc.assert(fc.property(anyText, (text) => !/^[=+\-@\t\r\n＝＋－＠]/.test(cellOf('text', text))))
    fc.assert(fc.property(anyText, (text) => !/^[=+\-@\t\r\n＝＋－＠]/.test(cellOf('list', [text, 'x']))))
  })

  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', '＝1'])('%j is refused when it is read', (cell) => {
    expect(cellOf('text', cell)).toBe(`'${cell}`)
    expect(() => valueIn('text', cell)).toThrow(CellError)
    expect(() => valueIn('list', cell)).toThrow(/like a formula/)
  })

  it('a text that only looks neutralised stays what it is', () => {
    expect(cellOf('text', "'=x")).toBe("''=x")
    expect(valueIn('text', "''=x")).toBe("'=x")
    expect(valueIn('text', "'hello'")).toBe("'hello'")
  })
})

describe('what a cell means', () => {
  it('when it is empty', () => {
    const empty = (['text', 'word', 'nullable', 'list', 'boolean', 'integer', 'time', 'secret'] as const).map(
      (kind) => valueIn(kind, ''),
    )
    expect(empty).toEqual(['', undefined, null, [], undefined, undefined, null, undefined])
  })

  it.each([
    ['TRUE', true],
    ['True', true],
    ['1', true],
    ['false', false],
    ['0', false],
  ])('boolean %s', (cell, value) => expect(valueIn('boolean', cell)).toBe(value))

  it.each<[Kind, string]>([
    ['boolean', 'yes'],
    ['boolean', 'WAHR'],
    ['integer', '22,0'],
    ['integer', '1.234'],
    ['integer', '1e3'],
    ['integer', '=22'],
    ['list', 'a\\b'],
    ['list', 'a\\'],
  ])('%s %s is refused', (kind, cell) => expect(() => valueIn(kind, cell)).toThrow(CellError))

  it('a time has one spelling, and what is none is left to others', () => {
    expect(valueIn('time', '2031-12-31T23:59:59Z')).toBe('2031-12-31T23:59:59.000Z')
    expect(valueIn('time', '2032-01-01T00:59:59+01:00')).toBe('2031-12-31T23:59:59.000Z')
    expect(valueIn('time', '31.12.2031')).toBe('31.12.2031')
    expect(valueIn('time', '2031')).toBe('2031')
  })

  it('a secret is what stands there, and is never written', () => {
    expect(valueIn('secret', "'=x")).toBe("'=x")
    expect(valueIn('secret', '=x')).toBe('=x')
    expect(() => cellOf('secret', 'x')).toThrow(TypeError)
  })
})
