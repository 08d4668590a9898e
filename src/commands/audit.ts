/** `sallyport audit verify|export|key`. */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { signerId } from '../../recordings/container/format/header.ts'
import { jsonLine } from '../../recordings/decode/frames/payload.ts'
import type { Head } from '../audit/chain.ts'
import { exportAudit } from '../audit/export.ts'
import type { AuditVerdict } from '../audit/verify.ts'
import { verifyStored } from '../audit/verify-stored.ts'
import { countOf, crossCheck, Evidence, listed, type SessionFault } from '../recording-service/evidence.ts'
import { type Beside, besideBroker } from './beside.ts'
import { type Command, expectNoWords, type Invocation, UsageError } from './command.ts'
import { forStream, plain } from './output.ts'

export const auditCommand: Command = {
  synopsis: [
    ['audit verify [--head ROW:HASH]… [--json]', 'check the audit log, and the recordings against it'],
    ['audit export', 'write the audit log to standard output, one JSON object a line'],
    ['audit key', 'print the public key that signs recordings and the audit log, and those that it replaced'],
  ],
  options: { json: { type: 'boolean' }, head: { type: 'string', multiple: true } },
  async run(invocation) {
    const [action, ...more] = invocation.words
    if (more.length > 0) expectNoWords(`audit ${action}`, more)
    if (action === 'verify') {
      const heads = headsOf(invocation)
      return await besideBroker(invocation, (beside) => verify(beside, heads, invocation))
    }
    if (action === 'export') return await besideBroker(invocation, exportAll)
    if (action === 'key') return await besideBroker(invocation, printKey)
    throw new UsageError('expected audit verify, audit export or audit key')
  },
}

function headsOf({ options }: Invocation): Head[] {
  const given = options['head']
  return (Array.isArray(given) ? given : []).map((text) => {
    const [, row, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(String(text)) ?? []
    if (row === undefined || hash === undefined) {
      throw new UsageError(`--head takes ROW:HASH (hash in 64 hex digits), not ${JSON.stringify(text)}`)
    }
    return { sequence: Number(row), hash: Buffer.from(hash, 'hex') }
  })
}

async function verify(beside: Beside, heads: Head[], { options }: Invocation): Promise<number> {
  const { recordingService } = beside
  const entries = await listed(recordingService.root)
  const evidence = new Evidence()
  const verdict = await verifyStored(beside, {
    trusted: recordingService.keys.trusted,
    known: heads,
    onEvent: (event) => evidence.add(event),
  })
  // With a gap in the log, its statements about recordings are no evidence.
  const sessions = verdict.fault ? [] : await crossCheck(recordingService.root, entries, evidence)
  const recordings = { ...countOf(evidence.sessions), faults: sessions }
  process.stdout.write(
    options['json'] ? jsonLine({ ...verdict, recordings }) : plain(textOf(verdict, recordings)),
  )
  return verdict.fault || sessions.length > 0 ? 1 : 0
}

function textOf(
  { rows, removed, head, checkpoints, unsigned, fault }: AuditVerdict,
  { due, deleted, faults }: { due: number; deleted: number; faults: SessionFault[] },
): string {
  if (fault) {
    return `row ${fault.sequence}: ${fault.code}: ${fault.message}; ${rows} rows before it are in order\n`
  }
  const lines = faults.map(({ session, code, message }) => `session ${session}: ${code}: ${message}`)
  const begin =
    removed === undefined ? '' : ` behind row ${removed}, which was handed over with all before it`
  const log = `${rows} rows${begin}, ${checkpoints} checkpoints, ${unsigned} rows not signed yet, head ${head ?? 'none'}`
  const files = `${due} recordings, ${deleted} deleted with a tombstone`
  lines.push(`${faults.length > 0 ? 'the log itself is in order' : 'ok'}: ${log}; ${files}`)
  return `${lines.join('\n')}\n`
}

/** The export ends with a checkpoint, so that a cut at its end is detected. */
async function exportAll({ store, audit }: Beside): Promise<number> {
  await audit.record('audit.export', {})
  await audit.checkpoint({ always: true })
  for await (const lines of exportAudit(store.audit)) {
    if (!process.stdout.write(forStream(lines, process.stdout))) await once(process.stdout, 'drain')
  }
  return 0
}

async function printKey({ recordingService }: Beside): Promise<number> {
  const [present, ...former] = recordingService.keys.trusted.map(
    (key) => `${Buffer.from(key).toString('base64')} ${signerId(key)}`,
  )
  process.stdout.write([present, ...former.map((key) => `${key} replaced`), ''].join('\n'))
  return 0
}
