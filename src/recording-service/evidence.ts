/**
 * Compares recordings with the audit log: each closed recording exists as it was sealed, or has a tombstone.
 */
import { isDue, type Noted, type SessionEvidence } from '../../recordings/container/evidence.ts'
import { linkBefore } from '../../recordings/container/session-file.ts'
import { harmless } from '../../recordings/decode/terminal/filter.ts'
import { findRecording, recordingsIn } from '../../recordings/storage/catalog.ts'
import type { CatalogEntry } from '../../recordings/storage/catalog-entry.ts'
import { FIRST, type StoredEvent } from '../audit/chain.ts'
import type { EventCode } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import { timestampOf } from '../audit/sentence.ts'
import type { AuditRepository, AuditRow } from '../store/store.ts'
import { progressOf } from './progress.ts'

/** Faults of the recordings as a whole. The codes are stable: scripts match on them. */
export const SESSION_FAULTS = {
  missing_session: 'the audit log knows a recording that is not there, and no tombstone of it',
  replaced_file: 'the recording is not the one that was sealed',
  lost_tail: 'the recording ends before what the audit log has noted of it, or a crash was used to cut it',
  unknown_session: 'there is a recording of a session that the audit log does not know',
} as const

export interface SessionFault {
  code: keyof typeof SESSION_FAULTS
  session: string
  message: string
}

/** Events that describe the closing of a recording; without a digest they prove nothing. */
const CLOSING: ReadonlySet<EventCode> = new Set([
  'recording.sealed',
  'recording.recovered',
  'recording.failed',
  'recording.found',
])

/** The recording that a tombstone was made for. */
interface Tombstone {
  digest: string | undefined
  size: number
  sentence: string
}

/** Collects the evidence of recordings from the log's events, in their order. */
export class Evidence {
  readonly sessions = new Map<string, SessionEvidence>()
  /** The last tombstone of each session, whether valid or not. */
  readonly #tombstones = new Map<string, Tombstone>()
  /** Beginning of the log, in milliseconds since the epoch: the evidence of earlier sessions is gone. */
  #since: number | undefined

  /** With `only`, an event about several sessions counts for this one. */
  add(event: StoredEvent, only?: string): void {
    const { code, fields, sequence, time } = event
    if (sequence > FIRST) this.#since ??= time
    else this.#since = Number.NEGATIVE_INFINITY
    if (code === 'recording.progress') this.#progress(String(fields.object ?? ''), only)
    const session = fields.session === undefined ? undefined : String(fields.session)
    if (session === undefined) return
    if (code === 'session.open') this.#change(session, {})
    if (code === 'session.close') this.#change(session, { ended: true })
    if (CLOSING.has(code)) this.#closing(session, event)
    if (code === 'recording.stored' && fields.result === 'success') {
      this.#change(session, { stored: String(fields.sha256) })
    }
    if (code === 'audit.kept') this.#kept(session, fields)
    if (code === 'recording.deleted') this.#tombstone(session, event)
  }

  /** Adds the evidence of rows that retention has removed. */
  #kept(session: string, { size, digest, sha256, object, result, reason }: EventFields): void {
    if (object !== undefined) this.#progress(String(object), session)
    this.#change(session, {
      // Rows of a running session are not removed.
      ended: true,
      ...(result === 'lost' && { lost: String(reason ?? '?') }),
      ...(digest !== undefined && { closed: { size: Number(size), digest: String(digest) } }),
      ...(sha256 !== undefined && { stored: String(sha256) }),
    })
    // An earlier tombstone was written when those rows existed, and was judged without them.
    this.#judge(session)
  }

  /** Returns whether a session that began then, in milliseconds since the epoch, is older than the log. */
  isBefore(begin: number): boolean {
    return begin < (this.#since ?? Number.NEGATIVE_INFINITY)
  }

  #progress(object: string, only: string | undefined): void {
    for (const { session, noted } of progressOf(object)) {
      if (only !== undefined && only !== session) continue
      const before = this.sessions.get(session)?.noted
      if (!before || before.size < noted.size) this.#change(session, { noted })
    }
  }

  #closing(session: string, { fields }: StoredEvent): void {
    if (fields.result === 'lost') this.#change(session, { lost: String(fields.reason ?? '?') })
    if (fields.digest === undefined) return
    this.#change(session, { closed: { size: Number(fields.size), digest: String(fields.digest) } })
  }

  #tombstone(session: string, event: StoredEvent): void {
    const { result, digest, size, user, method, reason } = event.fields
    if (result === 'failure') this.#tombstones.delete(session)
    else {
      this.#tombstones.set(session, {
        digest: digest === undefined ? undefined : String(digest),
        size: Number(size ?? 0),
        sentence: `deleted ${timestampOf(event)} by ${user ?? method}: ${reason ?? '?'}`,
      })
    }
    this.#judge(session)
  }

  /** A tombstone is valid for the recording with its digest, and not for a replacement. */
  #judge(session: string): void {
    const { deleted: _, ...known } = this.sessions.get(session) ?? {}
    const tombstone = this.#tombstones.get(session)
    const stands = tombstone !== undefined && standsFor(tombstone, known)
    this.sessions.set(session, { ...known, ...(stands && { deleted: tombstone.sentence }) })
  }

  #change(session: string, change: SessionEvidence): void {
    this.sessions.set(session, { ...this.sessions.get(session), ...change })
  }
}

function standsFor({ digest, size }: Tombstone, { closed, noted, lost }: SessionEvidence): boolean {
  if (closed) return closed.digest === digest
  // A recording that was never closed and is missing did not exist at its deletion.
  return lost === undefined && size >= (noted?.size ?? 0)
}

const ROWS_AT_A_TIME = 1000
/** Limit of the events of one session that are read for its evidence. */
const MAX_SESSION_EVENTS = 1_000_000

/**
 * Returns the evidence of one session, or of all. It is as reliable as the log: `audit verify` proves that.
 */
export async function gatherEvidence(audit: AuditRepository, session: string | undefined): Promise<Evidence> {
  const evidence = new Evidence()
  if (session !== undefined) {
    const own = await audit.ofSession(session, MAX_SESSION_EVENTS)
    const since = own[0]?.time ?? Number.POSITIVE_INFINITY
    for await (const event of progressSince(audit, since)) evidence.add(event, session)
    for (const { json } of own) evidence.add(JSON.parse(json))
    return evidence
  }
  for await (const event of eventsOf((from) => audit.range(from, ROWS_AT_A_TIME))) evidence.add(event)
  return evidence
}

/** Returns the noted checkpoints of these sessions from the log; the oldest of them began at `since`. */
export async function notedOf(
  audit: Pick<AuditRepository, 'progress'>,
  sessions: ReadonlySet<string>,
  since: number,
): Promise<ReadonlyMap<string, Noted>> {
  const evidence = new Evidence()
  if (sessions.size > 0) for await (const event of progressSince(audit, since)) evidence.add(event)
  const noted = new Map<string, Noted>()
  for (const session of sessions) {
    const known = evidence.sessions.get(session)?.noted
    if (known) noted.set(session, known)
  }
  return noted
}

const progressSince = (audit: Pick<AuditRepository, 'progress'>, since: number) =>
  eventsOf((from) => audit.progress(since, from, ROWS_AT_A_TIME))

async function* eventsOf(rowsFrom: (sequence: number) => Promise<AuditRow[]>): AsyncGenerator<StoredEvent> {
  for (let from = 0; ; ) {
    const rows = await rowsFrom(from)
    for (const { json } of rows) yield JSON.parse(json)
    const last = rows.at(-1)
    if (!last) return
    from = last.sequence + 1
  }
}

/**
 * Compares the recordings of `root` with the evidence, by the files' own content: `recordings verify` proves
 * that. `entries` were listed before the evidence was gathered, so that no new recording looks unknown.
 */
export async function crossCheck(
  root: string,
  entries: readonly CatalogEntry[],
  evidence: Evidence,
): Promise<SessionFault[]> {
  const faults: SessionFault[] = []
  const { sessions } = evidence
  const listed = new Map(entries.map((entry) => [entry.session, entry]))
  for (const entry of entries) {
    if (entry.state === 'empty' || sessions.has(entry.session) || evidence.isBefore(beginOf(entry))) continue
    const message = 'there is a recording, but the audit log knows no such session'
    faults.push({ code: 'unknown_session', session: entry.session, message })
  }
  for (const [session, known] of sessions) {
    if (!isDue(known)) continue
    const listing = listed.get(session)
    // Check recordings again that were closed while the log was read.
    const isAsKnown = listing !== undefined && listing.digest === known.closed?.digest
    const entry = isAsKnown ? listing : await findRecording(root, session)
    const fault = await faultOf(entry, known)
    if (fault) faults.push({ ...fault, session })
  }
  return faults
}

/**
 * Returns the beginning of a session from its recording's header. Without one the session counts for any
 * time.
 */
function beginOf({ metadata }: CatalogEntry): number {
  const begin = Date.parse(String(metadata['begin'] ?? ''))
  return Number.isFinite(begin) ? begin : Number.POSITIVE_INFINITY
}

async function faultOf(
  entry: CatalogEntry | undefined,
  { closed, noted, lost, stored }: SessionEvidence,
): Promise<Omit<SessionFault, 'session'> | undefined> {
  if (!entry || entry.state === 'empty') {
    const what = closed ? `the recording with digest ${closed.digest}` : 'the recording'
    return { code: 'missing_session', message: `${what} is gone, and nothing says why` }
  }
  if (lost !== undefined) return { code: 'lost_tail', message: lost }
  if (closed && (entry.digest !== closed.digest || entry.size !== closed.size)) {
    const found = `${entry.size} bytes with digest ${entry.digest ?? '(none)'}`
    const message = `expected ${closed.size} bytes with digest ${closed.digest}, found ${found}`
    return { code: 'replaced_file', message }
  }
  if (entry.stored && entry.stored.sha256 !== stored) {
    const message = `a note says that ${harmless(entry.stored.key)} has it, which the audit log does not: nothing was stored there`
    return { code: 'missing_session', message }
  }
  if (!noted || entry.stored) return undefined
  if (entry.size < noted.size) {
    const message = `it had ${noted.size} bytes already, and has ${entry.size} of them`
    return { code: 'lost_tail', message }
  }
  const link = await linkBefore(entry.directory, noted.size)
  if (link === noted.digest) return undefined
  const message = `expected the digest ${noted.digest} at byte ${noted.size}: the recording was written anew`
  return { code: 'replaced_file', message }
}

/** Returns all recordings of `root`, for `crossCheck`. */
export async function listed(root: string): Promise<CatalogEntry[]> {
  const entries: CatalogEntry[] = []
  for await (const entry of recordingsIn(root)) entries.push(entry)
  return entries
}

/** Counts the recordings that must exist according to the evidence, and the deleted ones. */
export function countOf(evidence: ReadonlyMap<string, SessionEvidence>): { due: number; deleted: number } {
  let due = 0
  let deleted = 0
  for (const one of evidence.values()) {
    if (isDue(one)) due++
    if (one.deleted !== undefined) deleted++
  }
  return { due, deleted }
}
