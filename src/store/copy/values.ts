/** Values and rows, the same ones whichever engine has them. */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import type { Table } from './tables.ts'

/** A value of a column. Numbers are exact: SQLite's and PostgreSQL's have 64 bits. */
export type Value = bigint | string | Uint8Array | null

/** In the order of the table's columns. */
export type Row = readonly Value[]

const SUM_BITS = 256

/** Returns a text that no other list of values has. */
export function textOf(values: Row): string {
  return JSON.stringify(
    values.map((value) => {
      if (value === null) return null
      if (typeof value === 'bigint') return `i${value}`
      return typeof value === 'string' ? `t${value}` : `b${Buffer.from(value).toString('hex')}`
    }),
  )
}

/** Returns the values of a text of `textOf`. */
export function valuesOf(text: string): Value[] {
  return (JSON.parse(text) as (string | null)[]).map((value) => {
    if (value === null) return null
    const rest = value.slice(1)
    if (value.startsWith('i')) return BigInt(rest)
    return value.startsWith('t') ? rest : new Uint8Array(Buffer.from(rest, 'hex'))
  })
}

/** Returns the values of the primary key. */
export function keyOf({ columns, key }: Table, row: Row): Value[] {
  return key.map((name) => row[columns.findIndex((column) => column.name === name)] ?? null)
}

/** Returns about how many bytes the row has. */
export function sizeOf(row: Row): number {
  let size = 0
  for (const value of row) size += typeof value === 'bigint' || value === null ? 8 : value.length
  return size
}

/** Number and digest of rows, whatever their order: the sum of their SHA-256. */
export class Digest {
  #sum = 0n
  rows = 0

  /** `text`: the row's. */
  add(text: string): void {
    this.#sum = BigInt.asUintN(SUM_BITS, this.#sum + BigInt(`0x${hash('sha256', text)}`))
    this.rows++
  }

  get hex(): string {
    return this.#sum.toString(16).padStart(SUM_BITS / 4, '0')
  }
}
