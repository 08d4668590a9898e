/**
 * Verifies the audit log: every row through the hashes, the hashes through the signed checkpoints, its end
 * through the notes outside of it. Names the first fault exactly and stops there.
 */
import { Buffer } from 'node:buffer'
import { signerId } from '../../recordings/container/format/header.ts'
import type { AuditRepository, AuditRow } from '../store/store.ts'
import { chainHash, FIRST, GENESIS, type Head, type StoredEvent } from './chain.ts'
import { CHECKPOINT_ROWS, judgeCheckpoint, SIGNING_KEY } from './checkpoint.ts'
import type { EventFields } from './events/fields.ts'
import { beginningOf, type Handover, handoverOf } from './handover.ts'
import { MAX_GROUP } from './log.ts'

const ROWS_AT_A_TIME = 1000
/** Limit of rows after the last checkpoint: those of a crash, of the broker and of a command beside it. */
export const MAX_UNSIGNED = 4 * (CHECKPOINT_ROWS + MAX_GROUP)

/** Faults of the audit log. The codes are stable: scripts match on them. */
export const AUDIT_FAULTS = {
  changed_event: 'an event was changed, or the one before it was replaced',
  bad_event: 'a row is not what the broker writes, or its columns differ from what was hashed',
  missing_events: 'events were removed',
  misplaced_event: 'events were swapped, repeated or put in',
  bad_signature: 'a checkpoint does not sign this chain: events before it were written anew',
  unknown_signer: 'a checkpoint is signed by a key that is not trusted',
  unsigned_events: 'more events without a checkpoint than the broker leaves',
  cut_tail: 'the log ends before an event that it is known to have had',
  replaced_log: 'an event that is known from elsewhere is another one here',
  missing_anchor: 'the note of how far the log reached is missing or was changed',
} as const
export type AuditFault = keyof typeof AUDIT_FAULTS

export interface AuditVerdict {
  /** Number of valid rows, counted from the first. */
  rows: number
  /**
   * The last row that retention has removed, according to a signed handover. Absent if the log begins with
   * its first row.
   */
  removed?: number
  /** Hash of the last valid row, as hex. Undefined if there is none. */
  head?: string
  /** Number of verified checkpoints. */
  checkpoints: number
  /** Number of valid rows after the last checkpoint. */
  unsigned: number
  /** The first fault. Absent if the whole log is in order. */
  fault?: { code: AuditFault; sequence: number; message: string }
}

export interface AuditVerifyOptions {
  /**
   * Raw Ed25519 keys: the current one, then its predecessors, which may not sign the end of a log. Absent to
   * skip the checkpoints' signatures.
   */
  trusted?: readonly Uint8Array[]
  /** Rows that the log must contain, in any order. */
  known?: readonly Head[]
  /** The last row to check. Absent for all, and the end of the log. */
  upTo?: number
  /** Receives every valid event. */
  onEvent?: (event: StoredEvent) => void
}

class Fault extends Error {
  readonly code: AuditFault

  constructor(code: AuditFault, message: string) {
    super(message)
    this.code = code
  }
}

class AuditVerifier {
  readonly #options: AuditVerifyOptions
  #previous: Uint8Array = GENESIS
  #next = FIRST
  #checkpoints = 0
  #first = FIRST
  #signed = FIRST - 1
  /** Id of the key that has to sign from here on, once the log names it. */
  #signer: string | undefined
  /** Id of the key that has signed the last checkpoint. */
  #last: string | undefined

  constructor(options: AuditVerifyOptions) {
    this.#options = options
  }

  /** Sets the log's beginning after that row. */
  begin({ last }: Handover): void {
    for (const { sequence, hash } of this.#options.known ?? []) {
      if (sequence !== last.sequence || Buffer.from(hash).equals(last.hash)) continue
      const message = `expected the hash ${Buffer.from(hash).toString('hex')} in row ${sequence}, which was handed over`
      throw new Fault('replaced_log', message)
    }
    this.#previous = last.hash
    this.#first = last.sequence + 1
    this.#next = this.#first
    // A handover ends with a checkpoint.
    this.#signed = last.sequence
  }

  get next(): number {
    return this.#next
  }

  verdict(fault?: Fault): AuditVerdict {
    return {
      rows: this.#next - this.#first,
      ...(this.#first > FIRST && { removed: this.#first - 1 }),
      ...(this.#next > this.#first ? { head: Buffer.from(this.#previous).toString('hex') } : {}),
      checkpoints: this.#checkpoints,
      unsigned: this.#next - 1 - this.#signed,
      ...(fault && { fault: { code: fault.code, sequence: this.#next, message: fault.message } }),
    }
  }

  /** @throws Fault */
  row(row: AuditRow): void {
    const { trusted, known = [], onEvent } = this.#options
    if (row.sequence !== this.#next) {
      throw new Fault('missing_events', `row ${this.#next} is missing: the next one is ${row.sequence}`)
    }
    const event = eventOf(row)
    if (!Buffer.from(chainHash(this.#previous, row.json)).equals(row.hash)) {
      throw new Fault(
        'changed_event',
        'the hash does not fit: this row was changed, or the one before it was replaced',
      )
    }
    for (const { sequence, hash } of known) {
      if (sequence !== row.sequence || Buffer.from(hash).equals(row.hash)) continue
      throw new Fault('replaced_log', `expected the hash ${Buffer.from(hash).toString('hex')} in this row`)
    }
    const isCheckpoint = event.code === 'audit.checkpoint'
    if (isCheckpoint && trusted) this.#checkpoint(event, trusted)
    this.#previous = row.hash
    this.#next++
    if (isCheckpoint) {
      this.#checkpoints++
      this.#signed = row.sequence
      this.#last = String(event.fields.signer)
    }
    if (event.code === 'secret.change' && event.fields.object_type === SIGNING_KEY) {
      this.#signer = String(event.fields.signer)
    }
    // The key of the handover signs from there on: later rows name its successors.
    if (event.code === 'audit.handover' && trusted && handoverOf(event.fields, trusted)) {
      this.#signer = String(event.fields.signer)
    }
    onEvent?.(event)
  }

  #checkpoint({ sequence, time, fields }: StoredEvent, trusted: readonly Uint8Array[]): void {
    if (this.#signer !== undefined && fields.signer !== this.#signer) {
      throw new Fault(
        'unknown_signer',
        `the checkpoint is signed by ${fields.signer}, which ${this.#signer} has come in the place of`,
      )
    }
    const judged = judgeCheckpoint({ sequence, time, before: this.#previous }, fields, trusted)
    if (judged === 'unknown_signer') {
      throw new Fault(
        judged,
        `the checkpoint is signed by ${fields.signer}, which is none of the trusted keys`,
      )
    }
    if (judged === 'bad_signature') {
      throw new Fault(
        judged,
        `the checkpoint does not sign the rows before it: rows after ${this.#signed} were written anew`,
      )
    }
  }

  /** @throws Fault */
  end(): void {
    for (const { sequence } of this.#options.known ?? []) {
      if (sequence < this.#next) continue
      throw new Fault('cut_tail', `the log ends before row ${this.#next}, but it had row ${sequence} already`)
    }
    const [present] = this.#options.trusted ?? []
    if (present && this.#last !== undefined && this.#last !== signerId(present)) {
      throw new Fault(
        'unknown_signer',
        `the last checkpoint is signed by ${this.#last}, which ${signerId(present)} has come in the place of`,
      )
    }
    const unsigned = this.#next - 1 - this.#signed
    if (this.#options.trusted && unsigned > MAX_UNSIGNED) {
      throw new Fault(
        'unsigned_events',
        `expected at most ${MAX_UNSIGNED} rows behind the last checkpoint, there are ${unsigned}`,
      )
    }
  }
}

function eventOf(row: AuditRow): StoredEvent {
  let event: { code?: unknown; sequence?: unknown; time?: unknown; fields?: EventFields }
  try {
    event = JSON.parse(row.json)
  } catch {
    throw new Fault('bad_event', 'the row is no JSON')
  }
  if (event.sequence !== row.sequence && Number.isSafeInteger(event.sequence)) {
    throw new Fault('misplaced_event', `this row holds the event of row ${event.sequence}`)
  }
  // The columns for searches are not hashed: they have to repeat the hashed values.
  const session = event.fields?.session ?? null
  const isRepeated = event.code === row.code && event.time === row.time && event.sequence === row.sequence
  if (!isRepeated || (row.session !== undefined && row.session !== session)) {
    throw new Fault('bad_event', 'a column differs from what was hashed')
  }
  if (!Number.isSafeInteger(row.time) || row.time < 0) throw new Fault('bad_event', 'its time is none')
  return { ...(event as StoredEvent), fields: event.fields ?? {} }
}

/** Verifies the log from the beginning that a signed handover allows, and stops at the first fault. */
export async function verifyAudit(
  repository: Pick<AuditRepository, 'range' | 'handovers'>,
  options: AuditVerifyOptions = {},
): Promise<AuditVerdict> {
  const verifier = new AuditVerifier(options)
  try {
    const { trusted, upTo = Number.MAX_SAFE_INTEGER } = options
    // From 0, so that a row before the first is found.
    const [first] = await repository.range(0, 1)
    const handover = first && (await beginningOf(repository, first.sequence, trusted))
    if (handover) verifier.begin(handover)
    for (let from = handover ? verifier.next : 0; ; from = verifier.next) {
      const rows = await repository.range(from, ROWS_AT_A_TIME)
      for (const row of rows) {
        if (row.sequence > upTo) return verifier.verdict()
        verifier.row(row)
      }
      if (rows.length < ROWS_AT_A_TIME) break
    }
    verifier.end()
    return verifier.verdict()
  } catch (error) {
    if (error instanceof Fault) return verifier.verdict(error)
    throw error
  }
}

/**
 * Returns the fault if the log has no anchor. A log without checkpoints is no exception, or a rewritten log
 * could omit them: the broker signs and notes its first events at its first start.
 */
export function anchorFault(verdict: AuditVerdict, anchor: Head | undefined): AuditVerdict {
  if (anchor || verdict.rows === 0 || verdict.fault) return verdict
  const message = AUDIT_FAULTS.missing_anchor
  return { ...verdict, fault: { code: 'missing_anchor', sequence: verdict.rows, message } }
}
