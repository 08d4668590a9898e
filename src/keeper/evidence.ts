/** Recordings beside the audit log: each that was closed is there as it was sealed, or has its tombstone. */
import { type CatalogEntry, findRecording, recordingsIn } from '../../recordings/catalog.ts'
import { isDue, type SessionEvidence } from '../../recordings/evidence.ts'
import { harmless } from '../../recordings/terminal-filter.ts'
import type { EventCode } from '../audit/catalogue.ts'
import type { StoredEvent } from '../audit/chain.ts'
import type { EventFields } from '../audit/fields.ts'
import { timestampOf } from '../audit/sentence.ts'
import type { AuditRepository } from '../store/store.ts'

/** What can be wrong with recordings as a whole. The codes are stable: scripts match on them. */
export const SESSION_FAULTS = {
  missing_session: 'the audit log knows a recording that is not there, and no tombstone of it',
  replaced_file: 'the recording is not the one that was sealed',
  unknown_session: 'there is a recording of a session that the audit log does not know',
} as const

export interface SessionFault {
  code: keyof typeof SESSION_FAULTS
  session: string
  message: string
}

/** Events that say how a recording was closed; without a digest they say nothing of it. */
const CLOSING: ReadonlySet<EventCode> = new Set([
  'recording.sealed',
  'recording.recovered',
  'recording.failed',
  'recording.found',
])

/** Gathers from the events of the log, in their order, what they say of recordings. */
export class Evidence {
  readonly sessions = new Map<string, SessionEvidence>()

  add(event: StoredEvent): void {
    const { code, fields } = event
    const session = fields.session === undefined ? undefined : String(fields.session)
    if (session === undefined) return
    if (code === 'session.open') this.#change(session, {})
    if (CLOSING.has(code)) {
      if (fields.digest === undefined) return
      this.#change(session, { closed: { size: Number(fields.size), digest: String(fields.digest) } })
    }
    if (code === 'recording.stored' && fields.result === 'success') {
      this.#change(session, { stored: String(fields.sha256) })
    }
    if (code === 'audit.kept') this.#kept(session, fields)
    if (code === 'recording.deleted') this.#tombstone(session, event)
  }

  /** What rows said that retention has removed. */
  #kept(session: string, { size, digest, sha256 }: EventFields): void {
    this.#change(session, {
      ...(digest !== undefined && { closed: { size: Number(size), digest: String(digest) } }),
      ...(sha256 !== undefined && { stored: String(sha256) }),
    })
  }

  /** It stands for the recording whose digest it names, and for no other that was put in its place. */
  #tombstone(session: string, event: StoredEvent): void {
    const { result, digest, user, method, reason } = event.fields
    const { deleted: _, ...known } = this.sessions.get(session) ?? {}
    const stands = result !== 'failure' && (!known.closed || known.closed.digest === digest)
    const deleted = `deleted ${timestampOf(event)} by ${user ?? method}: ${reason ?? '?'}`
    this.sessions.set(session, { ...known, ...(stands && { deleted }) })
  }

  #change(session: string, change: SessionEvidence): void {
    this.sessions.set(session, { ...this.sessions.get(session), ...change })
  }
}

const ROWS_AT_A_TIME = 1000
/** Events of one session that are read for its evidence. */
const MAX_SESSION_EVENTS = 1_000_000

/** The evidence of one session, or of all. It is as good as the log: `audit verify` proves that. */
export async function gatherEvidence(
  audit: AuditRepository,
  session: string | undefined,
): Promise<ReadonlyMap<string, SessionEvidence>> {
  const evidence = new Evidence()
  if (session !== undefined) {
    for (const { json } of await audit.ofSession(session, MAX_SESSION_EVENTS)) evidence.add(JSON.parse(json))
    return evidence.sessions
  }
  for (let from = 0; ; ) {
    const rows = await audit.range(from, ROWS_AT_A_TIME)
    for (const { json } of rows) evidence.add(JSON.parse(json))
    const last = rows.at(-1)
    if (!last) return evidence.sessions
    from = last.sequence + 1
  }
}

/**
 * Holds the recordings of `root` against the evidence, by what the files say of themselves: `recordings verify`
 * proves that. `entries` were listed before the evidence was gathered, so that nothing new looks unknown.
 */
export async function crossCheck(
  root: string,
  entries: readonly CatalogEntry[],
  evidence: ReadonlyMap<string, SessionEvidence>,
): Promise<SessionFault[]> {
  const faults: SessionFault[] = []
  const listed = new Map(entries.map((entry) => [entry.session, entry]))
  for (const { session, state } of entries) {
    if (state === 'empty' || evidence.has(session)) continue
    const message = 'there is a recording, but the audit log knows no such session'
    faults.push({ code: 'unknown_session', session, message })
  }
  for (const [session, { closed, deleted, stored }] of evidence) {
    if (!closed || deleted !== undefined) continue
    const known = listed.get(session)
    // What was closed while the log was read is looked at again.
    const entry = known?.digest === closed.digest ? known : await findRecording(root, session)
    if (!entry || entry.state === 'empty') {
      const message = `the recording with digest ${closed.digest} is gone, and nothing says why`
      faults.push({ code: 'missing_session', session, message })
    } else if (entry.digest !== closed.digest || entry.size !== closed.size) {
      const found = `${entry.size} bytes with digest ${entry.digest ?? '(none)'}`
      const message = `expected ${closed.size} bytes with digest ${closed.digest}, found ${found}`
      faults.push({ code: 'replaced_file', session, message })
    } else if (entry.stored && entry.stored.sha256 !== stored) {
      const message = `a note says that ${harmless(entry.stored.key)} has it, which the audit log does not: nothing was stored there`
      faults.push({ code: 'missing_session', session, message })
    }
  }
  return faults
}

/** All recordings of `root`, as `crossCheck` takes them. */
export async function listed(root: string): Promise<CatalogEntry[]> {
  const entries: CatalogEntry[] = []
  for await (const entry of recordingsIn(root)) entries.push(entry)
  return entries
}

/** How many recordings the evidence says there are, and how many were deleted. */
export function countOf(evidence: ReadonlyMap<string, SessionEvidence>): { due: number; deleted: number } {
  let due = 0
  let deleted = 0
  for (const one of evidence.values()) {
    if (isDue(one)) due++
    if (one.deleted !== undefined) deleted++
  }
  return { due, deleted }
}
