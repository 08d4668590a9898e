/**
 * The chain over the audit log: each row's hash covers the hash before it and the row's own JSON, so that a row
 * that was changed, removed from the middle or put in shows. What it cannot show by itself is an end that was
 * cut off, or a log that was written anew from some row on: for that, compare the last hash with one that was
 * noted elsewhere, for example the events at a syslog receiver.
 */
import { createHash } from 'node:crypto'
import type { AuditRepository, AuditRow } from '../store/store.ts'
import type { AuditEvent, EventFields } from './catalogue.ts'

/** What stands before the first row. */
export const GENESIS = new Uint8Array(32)
/** Sequence of the first row; each next one is higher by one. */
export const FIRST = 1
const ROWS_AT_A_TIME = 1000

export interface StoredEvent extends AuditEvent {
  sequence: number
}

/** The event's one JSON form, as hashed: members sorted by name on both levels, no spaces (as in RFC 8785). */
export function canonicalJson({ code, fields, sequence, time }: StoredEvent): string {
  const sorted = Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)))
  return JSON.stringify({ code, fields: sorted, sequence, time })
}

/** SHA-256(previous hash ‖ JSON as UTF-8). */
export function chainHash(previous: Uint8Array, json: string): Uint8Array {
  return createHash('sha256').update(previous).update(json, 'utf8').digest()
}

/** The rows that append `events` after `head`. */
export function chainRows(
  head: Pick<AuditRow, 'sequence' | 'hash'> | undefined,
  events: readonly AuditEvent[],
): AuditRow[] {
  let hash = head?.hash ?? GENESIS
  let sequence = head ? head.sequence + 1 : FIRST
  return events.map(({ code, fields, time }) => {
    const json = canonicalJson({ code, fields, sequence, time })
    hash = chainHash(hash, json)
    return { sequence: sequence++, time, code, json, hash }
  })
}

export interface AuditVerdict {
  /** Rows that are in order, counted from the first. */
  rows: number
  /** Hash of the last row that is in order, as hex; undefined: no row is. */
  head?: string
  /** The first fault; absent: the whole log is in order. */
  fault?: { sequence: number; message: string }
}

function faultOf(row: AuditRow, expected: number, previous: Uint8Array): string | undefined {
  if (row.sequence !== expected) return `row ${expected} is missing: the next one is ${row.sequence}`
  if (!Buffer.from(chainHash(previous, row.json)).equals(row.hash)) {
    return 'the hash does not fit: this row was changed, or the one before it was replaced'
  }
  let event: { code?: unknown; sequence?: unknown; time?: unknown; fields?: EventFields }
  try {
    event = JSON.parse(row.json)
  } catch {
    return 'the row is no JSON'
  }
  // the columns that are searched by are not hashed themselves: they have to repeat what was
  if (event.sequence !== row.sequence || event.code !== row.code || event.time !== row.time) {
    return 'a column differs from what was hashed'
  }
  return undefined
}

/** Walks the whole log and stops at the first fault. */
export async function verifyAudit(repository: Pick<AuditRepository, 'range'>): Promise<AuditVerdict> {
  let previous: Uint8Array = GENESIS
  let next = FIRST
  const verdict = (): AuditVerdict => ({
    rows: next - FIRST,
    ...(next > FIRST ? { head: Buffer.from(previous).toString('hex') } : {}),
  })
  // from 0, so that a row before the first would show
  for (let from = 0; ; from = next) {
    const rows = await repository.range(from, ROWS_AT_A_TIME)
    for (const row of rows) {
      const message = faultOf(row, next, previous)
      if (message !== undefined) return { ...verdict(), fault: { sequence: next, message } }
      previous = row.hash
      next++
    }
    if (rows.length < ROWS_AT_A_TIME) return verdict()
  }
}
