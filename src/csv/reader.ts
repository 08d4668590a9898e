/**
 * Parses a table from bytes, row by row: UTF-8 with or without BOM, any line ends, cells in quotes. Excel's
 * habits are accepted: a first line `sep=;`, empty rows and columns at the end, rows cut short.
 */
import { Buffer } from 'node:buffer'
import { pipeline, Readable } from 'node:stream'
import { CsvError as ParseError, parse } from 'csv-parse'
import { CsvError } from './error.ts'

/** Characters of one row: as many as the body of a JSON request may have. */
export const MAX_ROW = 1024 * 1024
/** Bytes that are read to detect the format: a BOM and `"sep=;"` with its line's end. */
const HEAD_BYTES = 16

export interface Row {
  /** From 1, as in a spreadsheet: empty rows count, lines within a cell do not. */
  row: number
  cells: string[]
}

/** The parser's errors in our words. */
const PARSE_ERRORS: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote that opens here is never closed',
  CSV_INVALID_CLOSING_QUOTE:
    'after the closing quote of a cell the separator is expected; a quote within one is doubled',
  INVALID_OPENING_QUOTE: 'a quote within a cell: put the whole cell in quotes, and double those within',
  CSV_MAX_RECORD_SIZE: `a row of more than ${MAX_ROW} characters, or a quote that is not closed`,
}

/**
 * Yields the rows that are not empty. The text's own separator (`sep=`) overrides `separator`.
 * @throws CsvError for a malformed table; the errors of `source`
 */
export async function* readRows(source: AsyncIterable<Uint8Array>, separator: string): AsyncGenerator<Row> {
  const iterator = source[Symbol.asyncIterator]()
  try {
    const { head, ended } = await headOf(iterator)
    const start = startOf(head, separator)
    const encoding = { isBroken: false }
    const bytes = checked(head.subarray(start.at), ended, iterator, encoding)
    const parser = parse({
      delimiter: start.separator,
      record_delimiter: ['\r\n', '\n', '\r'],
      relax_column_count: true,
      max_record_size: MAX_ROW,
    })
    pipeline(Readable.from(bytes, { objectMode: false }), parser, () => {
      // An error of either reaches the parser's reader.
    })
    let row = 0
    for await (const cells of parser as AsyncIterable<string[]>) {
      row++
      if (encoding.isBroken) refuseBroken(cells, row)
      if (cells.some((cell) => cell !== '')) yield { row, cells }
    }
  } catch (error) {
    throw error instanceof ParseError ? parseError(error) : error
  } finally {
    await iterator.return?.()
  }
}

async function headOf(iterator: AsyncIterator<Uint8Array>): Promise<{ head: Buffer; ended: boolean }> {
  let head: Buffer = Buffer.alloc(0)
  while (head.length < HEAD_BYTES) {
    const { done, value } = await iterator.next()
    if (done) return { head, ended: true }
    head = Buffer.concat([head, value])
  }
  return { head, ended: false }
}

/** Returns the beginning of the table, and its separator. */
function startOf(head: Buffer, separator: string): { at: number; separator: string } {
  const isUtf16 = head.length >= 2 && (head[0] === 0 || head[1] === 0)
  if (isUtf16 || head.subarray(0, 2).equals(UTF16_LE) || head.subarray(0, 2).equals(UTF16_BE)) {
    throw new CsvError('this is UTF-16 ("Unicode text"): save it as UTF-8 ("CSV UTF-8")', {
      row: 1,
      column: 1,
    })
  }
  const bom = head.subarray(0, 3).equals(UTF8_BOM) ? 3 : 0
  const named = /^(?:"sep=(.)"|sep=(.))(?:\r\n|\n|\r)/u.exec(head.subarray(bom, HEAD_BYTES).toString())
  if (!named) return { at: bom, separator }
  return { at: bom + Buffer.byteLength(named[0]), separator: named[1] ?? named[2] ?? separator }
}

const UTF16_LE = Buffer.from([0xff, 0xfe])
const UTF16_BE = Buffer.from([0xfe, 0xff])
const UTF8_BOM = Buffer.from([0xef, 0xbb, 0xbf])

/** Yields the same bytes; notes invalid UTF-8, so that the reader finds the cell. */
async function* checked(
  head: Buffer,
  ended: boolean,
  iterator: AsyncIterator<Uint8Array>,
  encoding: { isBroken: boolean },
): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const check = (chunk?: Uint8Array) => {
    if (encoding.isBroken) return
    try {
      decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      encoding.isBroken = true
    }
  }
  check(head)
  if (head.length > 0) yield head
  while (!ended) {
    const { done, value } = await iterator.next()
    if (done) break
    check(value)
    yield value
  }
  check()
}

/** Rejects U+FFFD, which the parser puts in place of invalid UTF-8. */
function refuseBroken(cells: readonly string[], row: number): void {
  const index = cells.findIndex((cell) => cell.includes('\uFFFD'))
  if (index === -1) return
  throw new CsvError('this is not UTF-8: save the file as UTF-8 ("CSV UTF-8" in Excel)', {
    row,
    column: index + 1,
  })
}

function parseError(error: ParseError): CsvError {
  const { code } = error
  const message = Object.hasOwn(PARSE_ERRORS, code) ? PARSE_ERRORS[code]! : 'this is not a table'
  const { records, column } = error as unknown as { records?: unknown; column?: unknown }
  return new CsvError(message, {
    ...(typeof records === 'number' && { row: records + 1 }),
    ...(typeof column === 'number' && { column: column + 1 }),
  })
}
