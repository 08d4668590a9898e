/**
 * Takes up recordings at the first start after a restore that are newer than the backup. A recording that
 * this broker has signed is registered again, with its session as far as its header describes it: it can be
 * listed, is kept and deleted like the others, and is missed when it disappears. A recording that this broker
 * has not signed stays as it is: `audit verify` reports it.
 */
import { type Verification, verifyStream } from '../../recordings/container/verify.ts'
import { recordingAt, recordingsIn } from '../../recordings/storage/catalog.ts'
import type { CatalogEntry } from '../../recordings/storage/catalog-entry.ts'
import { recoverRecording } from '../../recordings/storage/recover.ts'
import { bytesOf } from '../../recordings/storage/source.ts'
import { parseTargetName } from '../model/login.ts'
import type { SessionRecord } from '../model/objects.ts'
import { PROTOCOLS, type Protocol } from '../model/rights.ts'
import { fieldsOf, type RecoverDeps } from './recover.ts'
import type { RestoreNote } from './restored.ts'

/** Returns a line for the log about each found recording. */
export async function takeUpFound(deps: RecoverDeps, note: RestoreNote): Promise<string[]> {
  const report: string[] = []
  for await (const entry of recordingsIn(deps.recordingService.root)) {
    if (entry.state === 'empty' || (await isKnown(deps, entry.session))) continue
    const label = `the recording of session ${entry.session}, which the backup of ${note.created} does not know`
    try {
      report.push(`${label}, ${await takeUp(deps, entry, note)}`)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      report.push(`${label}, is left as it is: ${reason}`)
    }
  }
  return report
}

async function isKnown({ store }: RecoverDeps, session: string): Promise<boolean> {
  return (
    (await store.sessions.find(session)) !== undefined || (await store.audit.ofSession(session, 1)).length > 0
  )
}

async function takeUp(deps: RecoverDeps, found: CatalogEntry, note: RestoreNote): Promise<string> {
  const { store, audit, recordingService } = deps
  const { session, directory } = found
  const { trusted } = recordingService.keys
  if (found.state === 'open') {
    const sign = (statement: Uint8Array) => recordingService.signRecovered(session, statement)
    await recoverRecording(directory, session, { sign, trusted, now: deps.now })
  }
  const entry = await recordingAt(session, directory)
  const verification = await verifyStream(bytesOf(entry, recordingService.bucket), { session, trusted })
  const { fault, header } = verification
  if (fault || !header) throw new Error(fault?.message ?? 'it has no header')
  const reason = `it is newer than the backup of ${note.created}, which the database was restored from`
  const record = sessionOf(session, header.metadata, verification, reason)
  // Write the audit log first: after a crash in between only the session's row is missing, and not its proof.
  const kept = record.recording && { size: record.recording.size, digest: record.recording.digest }
  await audit.record('recording.found', { ...fieldsOf(record), ...kept, reason })
  await store.sessions.create(record)
  return `was taken up again (${verification.state}, ${verification.size} bytes)`
}

/** Returns the session according to its recording; unknown fields are empty. */
function sessionOf(
  id: string,
  metadata: NonNullable<Verification['header']>['metadata'],
  { state, size, frames, digest, lastFrame }: Verification,
  reason: string,
): SessionRecord {
  const text = (name: string) => String(metadata[name] ?? '')
  const begin = Date.parse(text('begin'))
  if (!Number.isFinite(begin)) throw new Error('its header does not say when it began')
  const target = parseTargetName(text('target'))
  return {
    id,
    begin,
    end: begin + Math.floor(lastFrame / 1000),
    user: text('user'),
    sourceIp: text('client'),
    protocol: protocolOf(text('protocol')),
    subprotocols: [],
    account: target?.account ?? '',
    domain: target?.domain ?? '',
    device: target?.device ?? '',
    service: target?.service ?? '',
    targetHost: text('host'),
    result: 'lost',
    reason,
    authorization: '',
    isRecorded: true,
    bytesIn: 0,
    bytesOut: 0,
    recording: { state, size, frames, digest },
  }
}

function protocolOf(name: string): Protocol {
  const protocol = PROTOCOLS.find((one) => one === name)
  if (protocol) return protocol
  throw new Error(`its header names the protocol ${JSON.stringify(name)}, which is none`)
}
