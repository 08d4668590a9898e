import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cellOf, valueIn } from '../../src/csv/cells.ts'
import { CsvError } from '../../src/csv/error.ts'
import { headingsOf } from '../../src/csv/header.ts'
import { MAX_ROW, type Row, readRows } from '../../src/csv/reader.ts'
import { separatorOf } from '../../src/csv/separator.ts'
import { BOM, headerOf, linesOf } from '../../src/csv/writer.ts'

/** Returns the rows of a text, read in pieces of that many bytes. */
async function read(text: string | Uint8Array, separator = ';', piece = 7): Promise<Row[]> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece)
  }
  return all(readRows(pieces(), separator))
}

async function all(rows: AsyncIterable<Row>): Promise<Row[]> {
  const list: Row[] = []
  for await (const row of rows) list.push(row)
  return list
}

async function fault(text: string | Uint8Array): Promise<CsvError> {
  const error = await read(text).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(error instanceof CsvError)) throw new Error(`no CsvError: ${error}`)
  return error
}

const cell = fc.string({ unit: fc.constantFrom(...';,\t|\'" =\r\nabé𝒳\uFEFF') })
const separator = fc.constantFrom(';', ',', '\t', '|', ' ', ':', 'x', "'", '#', '¦', '𝒳', '\\')

describe('round trip', () => {
  it('of any table with any separator, in pieces of any size', async () => {
    const table = fc
      .integer({ min: 1, max: 5 })
      .chain((width) => fc.array(fc.array(cell, { minLength: width, maxLength: width }), { maxLength: 6 }))
    await fc.assert(
      fc.asyncProperty(table, separator, fc.integer({ min: 1, max: 40 }), async (rows, separator, piece) => {
        const text = BOM + linesOf([['#h'], ...rows], separator)
        const kept = rows.filter((row) => row.some((one) => one !== ''))
        const [, ...reread] = await read(text, separator, piece)
        expect(reread.map(({ cells }) => cells)).toEqual(kept)
      }),
    )
  })

  it.each([
    ['excel', ','],
    ['excel-tab', '\t'],
  ])("python's csv module reads and writes the same (%s)", async (dialect, separator) => {
    const rows = [
      headerOf(['name', 'description']),
      ['a', 'plain'],
      ['b', 'two\r\nlines, "quoted"; and\ta tab'],
      ['c', ' spaces '],
      ['d', ''],
    ]
    const script = [
      'import csv, io, json, sys',
      'data = sys.stdin.buffer.read().decode("utf-8-sig")',
      `rows = list(csv.reader(io.StringIO(data, newline=""), dialect="${dialect}"))`,
      'out = io.StringIO(newline="")',
      `csv.writer(out, dialect="${dialect}").writerows(rows)`,
      'print(json.dumps([rows, out.getvalue()]))',
    ].join('\n')
    const input = BOM + linesOf(rows, separator)
    const [seen, written] = JSON.parse(execFileSync('python3', ['-c', script], { input, encoding: 'utf8' }))
    expect(seen).toEqual(rows)
    expect((await read(written, separator)).map(({ cells }) => cells)).toEqual(rows)
  })
})

describe('a spreadsheet with another separator', () => {
  const usual = [';', ',', '\t', '|']
  /**
   * Parses a text with Python's reader, which like Excel recognizes quotes only at the beginning of a cell.
   */
  const seenBy = (text: string): string[] => {
    const script = [
      'import csv, io, json, sys',
      'data = sys.stdin.buffer.read().decode("utf-8-sig")',
      `tables = [csv.reader(io.StringIO(data, newline=""), delimiter=d) for d in ${JSON.stringify(usual)}]`,
      'print(json.dumps([cell for rows in tables for row in rows for cell in row]))',
    ].join('\n')
    return JSON.parse(execFileSync('python3', ['-c', script], { input: text, encoding: 'utf8' }))
  }
  const texts = usual.flatMap((mark) => [
    `a${mark}=1+1${mark}b`,
    `a${mark}"=1+1${mark}b`,
    `a${mark}'"=1+1`,
    `a${mark}${mark}@x\r\n+1`,
    `a${mark}'=1`,
  ])

  it.each(usual)('runs no formula out of a table with %j', async (separator) => {
    const rows = texts.flatMap((one) => [
      [one, 'x', 'x'].map((text) => cellOf('text', text)),
      ['x', one, one].map((text) => cellOf('text', text)),
      ['x', cellOf('list', [one, one, '=1']), ''],
    ])
    const text = BOM + linesOf(rows, separator)
    expect(seenBy(text).filter((cell) => /^[=+\-@]/.test(cell))).toEqual([])
    const [first, second, third] = (await read(text, separator)).map(({ cells }) => cells)
    expect(valueIn('text', first![0]!)).toBe(texts[0])
    expect(valueIn('text', second![2]!)).toBe(texts[0])
    expect(valueIn('list', third![1]!)).toEqual([texts[0], texts[0], '=1'])
  })

  it.each(usual)('finds every usual separator in quotes in a table with %j', (separator) => {
    const lines = linesOf(
      usual.map((mark) => [`a${mark}b`, 'plain']),
      separator,
    ).split('\r\n')
    expect(lines.slice(0, -1)).toEqual(usual.map((mark) => `"a${mark}b"${separator}plain`))
  })
})

describe("Excel's habits", () => {
  it('the first line may name the separator, and is no row', async () => {
    for (const first of ['sep=,\r\n', '"sep=,"\n', `${BOM}sep=,\r`]) {
      expect(await read(`${first}#a,b\r\n1,2\r\n`)).toEqual([
        { row: 1, cells: ['#a', 'b'] },
        { row: 2, cells: ['1', '2'] },
      ])
    }
    expect(await read('sep=,;x\n')).toEqual([{ row: 1, cells: ['sep=,', 'x'] }])
  })

  it('empty rows are left out and counted, lines within a cell are not rows', async () => {
    const text = '#a;b\r\n\r\n"1\r\n1";2\r\n;;;\r\n3;4\r\n;\r\n\r\n'
    expect(await read(text)).toEqual([
      { row: 1, cells: ['#a', 'b'] },
      { row: 3, cells: ['1\r\n1', '2'] },
      { row: 5, cells: ['3', '4'] },
    ])
  })

  it('a BOM, and any end of a line', async () => {
    for (const end of ['\n', '\r\n', '\r']) {
      expect((await read(`${BOM}#a${end}1${end}2`)).map(({ cells }) => cells)).toEqual([['#a'], ['1'], ['2']])
    }
  })
})

describe('what is no table is refused with its place', () => {
  it('UTF-16, with a BOM and without', async () => {
    for (const bytes of [
      Buffer.from('\uFEFF#a;b', 'utf16le'),
      Buffer.from('#a;b', 'utf16le'),
      Buffer.from('\uFEFF#a', 'utf16le').swap16(),
      Buffer.from('#a', 'utf16le').swap16(),
    ]) {
      expect((await fault(bytes)).message).toMatch(/UTF-16/)
    }
  })

  it('another encoding, at its cell', async () => {
    const latin1 = Buffer.from('#a;b\r\nx;y\r\nx;M\xfcller\r\n', 'latin1')
    const error = await fault(latin1)
    expect(error.message).toMatch(/not UTF-8/)
    expect(error.place).toEqual({ row: 3, column: 2 })
    const cut = Buffer.from('#a;b\r\nx;ü').subarray(0, -1)
    expect((await fault(cut)).place).toEqual({ row: 2, column: 2 })
  })

  it('quotes that do not fit', async () => {
    const open = await fault('#a;b\r\n1;"2\r\n3;4\r\n')
    expect([open.message, open.place.row]).toEqual([expect.stringMatching(/never closed/), 2])
    const inside = await fault('#a;b\r\n1;2\r\n1;x"y\r\n')
    expect([inside.message, inside.place]).toEqual([expect.stringMatching(/quote/), { row: 3, column: 2 }])
    const after = await fault('#a;b\r\n1;"x"y\r\n')
    expect([after.message, after.place.row]).toEqual([expect.stringMatching(/closing quote/), 2])
  })

  it('a row without end', async () => {
    const text = `#a\r\n"${'x'.repeat(MAX_ROW + 9)}`
    expect(await read(text, ';', 65536).catch((error: Error) => error.message)).toMatch(/more than/)
  })

  it('what the source throws comes through, and the source is closed', async () => {
    let closed = 0
    async function* source(fails: boolean) {
      try {
        yield Buffer.from('#a\r\n1\r\n'.repeat(100))
        if (fails) throw new RangeError('gone')
        yield* new Array<Buffer>(1000).fill(Buffer.from('1\r\n'))
      } finally {
        closed++
      }
    }
    await expect(all(readRows(source(true), ';'))).rejects.toThrow(RangeError)
    expect(closed).toBe(1)
    for await (const _ of readRows(source(false), ';')) break
    expect(closed).toBe(2)
  })

  it('random bytes end in rows or in a CsvError', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        await read(bytes).catch((error: unknown) => expect(error).toBeInstanceOf(CsvError))
      }),
    )
  })
})

describe('header', () => {
  const known = ['device_name', 'host', 'description']
  const of = (cells: string[]) => headingsOf(cells, known, ['device_name'])

  it('names columns in any order', () => {
    expect(of(['#host', ' device_name ', '', ''])).toEqual({
      headings: [
        { name: 'host', column: 1 },
        { name: 'device_name', column: 2 },
      ],
      problems: [],
    })
    expect(of(['# device_name']).headings).toEqual([{ name: 'device_name', column: 1 }])
  })

  it('says what is wrong with it', () => {
    const { problems } = of(['#hots', 'host', 'host'])
    expect(problems).toEqual([
      { column: 1, message: 'there is no column "hots"; the nearest is "host"' },
      { column: 3, message: 'the column "host" is there twice' },
      { message: 'the column "device_name" is missing' },
    ])
    expect(() => of(['device_name', 'host'])).toThrow(/expected a header/)
    expect(() => of(['#x', ...Array<string>(1000).fill('')])).toThrow(/columns/)
  })
})

it('a separator is any single character that is not taken', () => {
  for (const good of [';', ',', '\t', '|', ':', '𝒳', ' ']) expect(separatorOf(good)).toBe(good)
  expect([separatorOf('tab'), separatorOf('TAB')]).toEqual(['\t', '\t'])
  for (const bad of ['', '"', '\n', '\r', '\0', ';;', '\uFEFF', '\ud800'])
    expect(separatorOf(bad)).toBeUndefined()
})
