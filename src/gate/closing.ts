/**
 * The end of a session: its audit events and its row in the store. Size and frames of the recording come from
 * its signed statements on the disk, not from the process that wrote it.
 */
import { dirname } from 'node:path'
import type { Audit } from '../audit/events/catalogue.ts'
import { cleanValue } from '../audit/events/clean.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { CloseRequest } from '../contract/gate.ts'
import type { SessionRecord } from '../model/objects.ts'
import { RIGHTS } from '../model/rights.ts'
import type { EndedRecording } from '../recording-service/indexing/ended.ts'
import type { RecordingService } from '../recording-service/service.ts'
import type { Store } from '../store/store.ts'
import type { Arrears } from './arrears.ts'
import { type RunningSession, sessionFields } from './running.ts'

const RESULTS: readonly CloseRequest['result'][] = ['success', 'failure', 'killed']

/**
 * Checks and bounds the proxy's report. The actor that ended the session, if any, is known here; a proxy
 * cannot name it. An impossible value makes the session a failure or becomes 0, but never prevents the
 * closing.
 */
export function accountOf(session: RunningSession, said: CloseRequest): CloseRequest {
  const { result, reason, rightsUsed, bytesIn, bytesOut } = said
  const isKnown = RESULTS.includes(result)
  const isStopped = isKnown && result === 'killed' && session.stopped !== undefined
  const why = isStopped ? session.stopped : reason
  return {
    session: session.id,
    result: isKnown ? result : 'failure',
    ...(why !== undefined && { reason: cleanValue(String(why)) }),
    rightsUsed: RIGHTS.filter((right) => rightsUsed.includes(right)),
    bytesIn: count(bytesIn),
    bytesOut: count(bytesOut),
  }
}

/** Returns the number if it is a possible count of bytes, or 0 if not. */
function count(bytes: number): number {
  return Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : 0
}

export interface ClosingDeps {
  store: Pick<Store, 'sessions'>
  /** Writes the session's end when the database is there. */
  arrears: Pick<Arrears, 'write'>
  audit: Audit
  recordings: Pick<RecordingService, 'ended'>
}

/**
 * Writes the end of a session that closed at `end`, in milliseconds since the epoch. Returns the state of its
 * recording, or undefined if it has none.
 */
export async function accountFor(
  session: RunningSession,
  request: CloseRequest,
  end: number,
  { store, arrears, audit, recordings }: ClosingDeps,
): Promise<SessionRecord['recording']> {
  const recording = session.isRecorded ? await recordings.ended(session.id) : undefined
  // Audit first: if a crash comes in between, the next start closes the session once more instead of never. The
  // two events are recorded in one turn, so that they share a commit.
  const sealed = auditRecording(session, recording, request, audit)
  const closed = audit.record('session.close', {
    ...sessionFields(session),
    subprotocol: request.rightsUsed.join(' '),
    result: request.result,
    ...(request.reason !== undefined && { reason: request.reason }),
    duration: end - session.begin,
    bytes_in: request.bytesIn,
    bytes_out: request.bytesOut,
  })
  await Promise.all([sealed, closed])
  const change = {
    end,
    result: request.result,
    ...(request.reason !== undefined && { reason: request.reason }),
    subprotocols: request.rightsUsed,
    bytesIn: request.bytesIn,
    bytesOut: request.bytesOut,
    ...(recording && { recording }),
  }
  await arrears.write(() => store.sessions.update(session.id, change))
  return recording
}

/** Returns what indexing needs, or undefined if the recording was not closed in order. */
export function endedRecording(
  { recording: place, begin }: RunningSession,
  recording: SessionRecord['recording'],
): EndedRecording | undefined {
  if (!place || !recording || recording.digest === '') return undefined
  const { size, digest } = recording
  return { directory: dirname(place.path), begin, size, digest, key: place.key }
}

async function auditRecording(
  session: RunningSession,
  recording: SessionRecord['recording'] | undefined,
  { reason }: CloseRequest,
  audit: Audit,
): Promise<void> {
  if (!session.isRecorded) return
  const fields: EventFields = sessionFields(session)
  if (recording?.state === 'sealed') {
    await audit.record('recording.sealed', { ...fields, size: recording.size, digest: recording.digest })
  } else {
    await audit.record('recording.failed', {
      ...fields,
      ...(recording?.digest && { size: recording.size, digest: recording.digest }),
      reason: reason ?? 'the recording could not be written',
    })
  }
}
