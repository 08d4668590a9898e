/**
 * The chain over the audit log: each row's hash covers the hash before it and the row's own JSON, so that a row
 * that was changed, removed from the middle or put in shows. Against a log that was written anew with all hashes
 * repaired there are signed checkpoints in it (checkpoint.ts), against an end that was cut off the note of how
 * far it reached (anchor.ts); verify.ts looks at all of it.
 */
import { createHash, type KeyObject } from 'node:crypto'
import type { AuditRow } from '../store/store.ts'
import { checkpointEvent } from './checkpoint.ts'
import type { AuditEvent } from './events/catalogue.ts'

/** What stands before the first row. */
export const GENESIS = new Uint8Array(32)
/** Sequence of the first row; each next one is higher by one. */
export const FIRST = 1

export interface StoredEvent extends AuditEvent {
  sequence: number
}

/** A row's place and hash: how far the chain reaches. */
export type Head = Pick<AuditRow, 'sequence' | 'hash'>

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
export function chainRows(head: Head | undefined, events: readonly AuditEvent[]): AuditRow[] {
  let hash = head?.hash ?? GENESIS
  let sequence = head ? head.sequence + 1 : FIRST
  return events.map(({ code, fields, time }) => {
    const json = canonicalJson({ code, fields, sequence, time })
    hash = chainHash(hash, json)
    return { sequence: sequence++, time, code, json, hash }
  })
}

/** The checkpoint that signs the chain up to `head`, and its row. */
export function chainCheckpoint(
  head: Head | undefined,
  time: number,
  key: KeyObject,
): { event: AuditEvent; row: AuditRow } {
  const place = { sequence: head ? head.sequence + 1 : FIRST, time, before: head?.hash ?? GENESIS }
  const event = checkpointEvent(place, key)
  return { event, row: chainRows(head, [event])[0]! }
}
