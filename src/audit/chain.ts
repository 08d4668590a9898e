/**
 * The chain over the audit log: each row's hash covers the previous hash and the row's own JSON, so that a
 * row that was changed, inserted, or removed from the middle is detected. The signed checkpoints
 * (checkpoint.ts) detect a log that was rewritten with all hashes repaired, and the note of its reach
 * (anchor.ts) detects a cut end; verify.ts checks all of them.
 */
import { createHash, type KeyObject } from 'node:crypto'
import type { AuditRow } from '../store/store.ts'
import { checkpointEvent } from './checkpoint.ts'
import type { AuditEvent } from './events/catalogue.ts'

/** Previous hash of the first row. */
export const GENESIS = new Uint8Array(32)
/** Sequence of the first row; each following one is higher by one. */
export const FIRST = 1

export interface StoredEvent extends AuditEvent {
  sequence: number
}

/** A row's place and hash: the reach of the chain. */
export type Head = Pick<AuditRow, 'sequence' | 'hash'>

/**
 * Returns the event's only JSON form, as hashed: members sorted by name on both levels, no spaces (as in RFC
 * 8785).
 */
export function canonicalJson({ code, fields, sequence, time }: StoredEvent): string {
  const sorted = Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)))
  return JSON.stringify({ code, fields: sorted, sequence, time })
}

/** Returns SHA-256(previous hash ‖ JSON as UTF-8). */
export function chainHash(previous: Uint8Array, json: string): Uint8Array {
  return createHash('sha256').update(previous).update(json, 'utf8').digest()
}

/** Returns the rows that append `events` after `head`. */
export function chainRows(head: Head | undefined, events: readonly AuditEvent[]): AuditRow[] {
  let hash = head?.hash ?? GENESIS
  let sequence = head ? head.sequence + 1 : FIRST
  return events.map(({ code, fields, time }) => {
    const json = canonicalJson({ code, fields, sequence, time })
    hash = chainHash(hash, json)
    return { sequence: sequence++, time, code, json, hash }
  })
}

/** Returns the checkpoint that signs the chain up to `head`, and its row. */
export function chainCheckpoint(
  head: Head | undefined,
  time: number,
  key: KeyObject,
): { event: AuditEvent; row: AuditRow } {
  const place = { sequence: head ? head.sequence + 1 : FIRST, time, before: head?.hash ?? GENESIS }
  const event = checkpointEvent(place, key)
  return { event, row: chainRows(head, [event])[0]! }
}
