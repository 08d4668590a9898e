/**
 * Seals and accounts for recordings and sessions that a crash left open: the broker's, at its next start, or a
 * session worker's, at once.
 */

import type { Noted } from '../../recordings/container/evidence.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import type { CatalogEntry } from '../../recordings/storage/catalog-entry.ts'
import { type Lack, type Recovery, recoverRecording } from '../../recordings/storage/recover.ts'
import type { Audit, AuditEvent } from '../audit/events/catalogue.ts'
import type { SessionRecord } from '../model/objects.ts'
import { RIGHTS } from '../model/rights.ts'
import type { Store } from '../store/store.ts'
import { notedOf } from './evidence.ts'
import type { RestoreNote } from './restored.ts'
import type { RecordingService } from './service.ts'

export interface RecoverDeps {
  store: Store
  audit: Audit
  recordingService: RecordingService
  /**
   * Set if the database was restored since the last start: sessions that it has as running ran when its
   * backup was made.
   */
  restored?: RestoreNote
  /** Whether the session runs on in another broker: it is left alone. Absent if there is no other. */
  runsElsewhere?: (session: string) => boolean
  /** Sessions whose end is in the audit log, and was to be stored when the database is back. */
  ends?: ReadonlyMap<string, AuditEvent>
  now: () => number
}

/**
 * Returns lines for the log about each session that was running when the broker died. A recording that cannot
 * be sealed now (a disk error) does not prevent the start: it stays open, and the next start tries again.
 */
export async function recoverSessions(deps: RecoverDeps): Promise<string[]> {
  const { store, runsElsewhere = () => false } = deps
  const current = await store.sessions.list({ status: 'current' }, { limit: -1, offset: 0 })
  const items = current.items.filter(({ id }) => !runsElsewhere(id))
  const report: string[] = []
  const since = items.reduce((earliest, { begin }) => Math.min(earliest, begin), Number.POSITIVE_INFINITY)
  const noted = await notedOf(store.audit, new Set(items.map(({ id }) => id)), since)
  for (const session of items) {
    report.push(await recoverSession(deps, session, causeOf(deps.restored), noted.get(session.id)))
  }
  report.push(...(await recoverEnded(deps)))
  return report
}

/**
 * Seals and accounts for a session that runs no longer, for this cause. Returns a line for the log. A recording
 * that cannot be sealed now leaves the session to the next start.
 */
async function recoverSession(
  deps: RecoverDeps,
  session: SessionRecord,
  cause: string,
  noted: Noted | undefined,
): Promise<string> {
  const whom = `session ${session.id} of ${session.user}`
  const end = deps.ends?.get(session.id)
  if (end) return `${whom}: ${await storeEnd(deps, session, end)}`
  let recording: Recovered | undefined
  try {
    recording = session.isRecorded ? await recoverOne(deps, session, noted) : undefined
  } catch (error) {
    const reason = `the recording cannot be sealed now: ${messageOf(error)}`
    await deps.audit.record('recording.failed', { ...whose(session), reason })
    return `${whom}: ${reason}; the next start tries again`
  }
  const reason = `${cause}${recording ? `; ${recording.text}` : ''}`
  // Write the audit log first, as in gate/closing.ts: after a crash in between the event is repeated, not
  // lost.
  await deps.audit.record('session.close', { ...fieldsOf(session), result: 'failure', reason })
  await deps.store.sessions.update(session.id, {
    end: deps.now(),
    result: 'lost',
    reason,
    ...(recording && { recording: recording.summary }),
  })
  return `${whom}: ${reason}`
}

/** Stores the end that the audit log has already. Returns a line for the log. */
async function storeEnd(
  { store, recordingService }: RecoverDeps,
  { id, begin, isRecorded }: SessionRecord,
  { time, fields }: AuditEvent,
): Promise<string> {
  const entry = isRecorded ? await findRecording(recordingService.root, id) : undefined
  const isClosed = entry?.state === 'sealed' || entry?.state === 'recovered'
  const { frames = 0, size = 0, digest = '' } = entry ?? {}
  const result = RESULTS.find((one) => one === fields.result) ?? 'failure'
  const used = String(fields.subprotocol ?? '').split(' ')
  await store.sessions.update(id, {
    end: fields.duration === undefined ? time : begin + Number(fields.duration),
    result,
    ...(fields.reason !== undefined && { reason: String(fields.reason) }),
    subprotocols: RIGHTS.filter((right) => used.includes(right)),
    bytesIn: Number(fields.bytes_in ?? 0),
    bytesOut: Number(fields.bytes_out ?? 0),
    ...(isRecorded && {
      recording: isClosed
        ? { state: entry.state as 'sealed' | 'recovered', size, frames, digest }
        : { state: 'failed', size, frames: 0, digest: '' },
    }),
  })
  return 'it had ended in order while the database was away'
}

const RESULTS = ['success', 'failure', 'killed'] as const

/**
 * Closes one session whose proxy has died while the broker runs, for this cause. Returns a line for the log.
 * `known`: the reach of its recording on the disk; absent: what the audit log has noted, which is read for it.
 */
export async function recoverAbandoned(
  deps: RecoverDeps,
  id: string,
  cause: string,
  known?: Noted,
): Promise<string> {
  const session = await deps.store.sessions.find(id)
  if (!session || session.end !== undefined) return `session ${id}: ${cause}`
  const noted = known ?? (await notedOf(deps.store.audit, new Set([id]), session.begin)).get(id)
  return await recoverSession(deps, session, cause, noted)
}

/**
 * Seals recordings that a disk error left open although their sessions ended in order. One that cannot be
 * sealed is not reported again.
 */
async function recoverEnded(deps: RecoverDeps): Promise<string[]> {
  const { store, recordingService } = deps
  const report: string[] = []
  const sessions = await store.sessions.unsealed()
  const since = sessions[0]?.begin ?? Number.POSITIVE_INFINITY
  const noted = await notedOf(store.audit, new Set(sessions.map(({ id }) => id)), since)
  for (const session of sessions) {
    const { id, user } = session
    let closed: Recovered | undefined
    try {
      const entry = await findRecording(recordingService.root, id)
      // A crash may have come between the seal and its event.
      if (entry?.state !== 'open' && entry?.state !== 'recovered') continue
      const recovery = await seal(deps, session, entry, noted.get(id))
      closed = await tellClosed(deps, session, recovery, noted.get(id))
    } catch (error) {
      report.push(`session ${id} of ${user}: its recording cannot be sealed now either: ${messageOf(error)}`)
      continue
    }
    if (!closed) continue
    await store.sessions.update(id, { recording: closed.summary })
    report.push(`session ${id} of ${user}, which had ended: ${closed.text}`)
  }
  return report
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

const causeOf = (restored: RestoreNote | undefined): string =>
  restored
    ? `it ran when the backup of ${restored.created} was made, which the database was restored from`
    : 'the broker ended without closing it'

interface Recovered {
  summary: NonNullable<SessionRecord['recording']>
  text: string
}

async function recoverOne(
  deps: RecoverDeps,
  session: SessionRecord,
  noted: Noted | undefined,
): Promise<Recovered> {
  const { audit, recordingService, restored } = deps
  const about = whose(session)
  const entry = await findRecording(recordingService.root, session.id)
  if (!entry || entry.state === 'empty') {
    // Its folder was made, with the key in it, before the session was opened.
    const isLost = !restored && (!entry || noted !== undefined)
    const text = restored ? 'its recording is not there' : textOfNone(entry !== undefined, noted)
    await audit.record('recording.failed', {
      ...about,
      ...(isLost && { result: 'lost', duration: noted?.milliseconds ?? 0 }),
      reason: text,
    })
    return { summary: { state: 'failed', size: 0, frames: 0, digest: '' }, text }
  }
  // Only closed recordings go to the object store; after a restore the database may not know that it was
  // closed.
  const recovery: Recovery = entry.stored ? { outcome: 'closed' } : await seal(deps, session, entry, noted)
  const closed = await tellClosed(deps, session, recovery, noted)
  if (closed) return closed
  const text =
    recovery.outcome === 'damaged'
      ? `its recording is damaged and left as it is: ${recovery.fault.message}`
      : 'its recording had not begun'
  const isLost = noted !== undefined && !restored
  await audit.record('recording.failed', {
    ...about,
    ...(isLost && { result: 'lost', duration: noted.milliseconds }),
    reason: text,
  })
  return { summary: { state: 'failed', size: entry.size, frames: 0, digest: '' }, text }
}

function seal(
  { recordingService, now }: RecoverDeps,
  { id }: SessionRecord,
  { directory }: CatalogEntry,
  noted: Noted | undefined,
): Promise<Recovery> {
  return recoverRecording(directory, id, {
    sign: (statement) => recordingService.signRecovered(id, statement),
    trusted: recordingService.keys.trusted,
    now,
    ...(noted && { noted }),
  })
}

/** Writes to the audit log how the recording is closed. Returns undefined if it is not. */
async function tellClosed(
  { audit, recordingService, restored }: RecoverDeps,
  session: SessionRecord,
  recovery: Recovery,
  noted: Noted | undefined,
): Promise<Recovered | undefined> {
  const about = whose(session)
  const lost = 'lack' in recovery && recovery.lack ? await tellLack(audit, about, recovery.lack) : undefined
  if (recovery.outcome === 'recovered') {
    const last = new Date(session.begin + Math.floor(recovery.lastFrame / 1000)).toISOString()
    const missing = lost ?? (restored ? 'what came after that is missing' : wholeText(noted))
    const text =
      `its recording is sealed up to ${last}, ${recovery.droppedBytes} bytes of an unfinished write were dropped, ` +
      `and ${missing}`
    await audit.record('recording.recovered', {
      ...about,
      size: recovery.size,
      digest: recovery.digest,
      ...(noted && { duration: millisecondsOf(recovery.lack) }),
      reason: text,
    })
    const { size, frames, digest } = recovery
    return { summary: { state: 'recovered', size, frames, digest }, text }
  }
  if (recovery.outcome === 'closed') {
    const closed = await findRecording(recordingService.root, session.id)
    const state = closed?.state === 'sealed' || closed?.state === 'recovered' ? closed.state : 'failed'
    const summary: Recovered['summary'] = {
      state,
      size: closed?.size ?? 0,
      frames: closed?.frames ?? 0,
      digest: closed?.digest ?? '',
    }
    // The crash may have come before its digest was in the audit log.
    const text = `its recording was closed in order${lost ? `, but ${lost}` : ''}`
    await audit.record(`recording.${state}`, {
      ...about,
      size: summary.size,
      digest: summary.digest,
      ...(state !== 'sealed' && { reason: text }),
    })
    return { summary, text }
  }
  return undefined
}

function textOfNone(isThere: boolean, noted: Noted | undefined): string {
  const before = noted ? `, and ${secondsOf(noted.milliseconds)} s of it had been written` : ''
  if (!isThere) return `its recording is not there: its folder is gone${before}`
  return noted ? `its recording is not there${before}` : 'its recording had not begun'
}

const secondsOf = (milliseconds: number) => (milliseconds / 1000).toFixed(3)
const millisecondsOf = (lack: Lack | undefined) => Math.round((lack?.seconds ?? 0) * 1000)

/** Describes the recording if all of its noted bytes exist. */
const wholeText = (noted: Noted | undefined) =>
  `${noted ? `all ${secondsOf(noted.milliseconds)} s that had been noted are there, and ` : ''}at most the last second before the end is missing`

/**
 * Writes the alert for a recording that was cut or replaced while the broker was down. Returns the fault in
 * words.
 */
async function tellLack(
  audit: Audit,
  about: { session: string; user: string },
  { seconds }: Lack,
): Promise<string> {
  const lost =
    seconds > 0
      ? `at least ${seconds.toFixed(3)} s that had been written are missing: it was cut or replaced after the broker had ended`
      : 'it is not what had been written: it was replaced after the broker had ended'
  await audit.record('recording.failed', {
    ...about,
    result: 'lost',
    duration: Math.round(seconds * 1000),
    reason: lost,
  })
  return lost
}

/** Returns the event fields of the session and its user. */
function whose({ id, user, apiKey }: SessionRecord) {
  return { session: id, user, ...(apiKey !== undefined && { api_key: apiKey }) }
}

/** Returns the event fields of a session that only the store knows. */
export function fieldsOf(session: SessionRecord) {
  return {
    ...whose(session),
    client_ip: session.sourceIp,
    protocol: session.protocol,
    account: session.account,
    domain: session.domain,
    device: session.device,
    service: session.service,
    target_host: session.targetHost,
  }
}
