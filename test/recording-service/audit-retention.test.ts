/**
 * Retention of the audit log over the real database: the removed rows, and the results of both verifiers
 * after that.
 */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keyOf, verifyAudit as standAloneAudit } from '../../bin/verify.mjs'
import { rawPublicKey } from '../../recordings/container/format/signature.ts'
import { chainRows, type Head } from '../../src/audit/chain.ts'
import type { EventCode } from '../../src/audit/events/catalogue.ts'
import type { EventFields } from '../../src/audit/events/fields.ts'
import { exportAudit } from '../../src/audit/export.ts'
import { handoverFields } from '../../src/audit/handover.ts'
import { type AuditVerdict, verifyAudit } from '../../src/audit/verify.ts'
import { type AuditLimits, AuditRetention } from '../../src/recording-service/audit-retention.ts'
import { crossCheck, Evidence, gatherEvidence, listed } from '../../src/recording-service/evidence.ts'
import { MemoryAudit } from '../audit/memory.ts'
import { idOf, type Setting, startSetting } from './setting.ts'

const DAY = 86_400_000

let here: Setting
let folder: string
let retention: AuditRetention
let noted: Head | undefined
let delivered: number | undefined
let errors: Error[]
/** Milliseconds by which the clock was set forward. */
let jumped: number
const raw = () => rawPublicKey(here.key)

beforeEach(async () => {
  here = await startSetting()
  folder = mkdtempSync(join(tmpdir(), 'sallyport-audit-retention-'))
  delivered = undefined
  errors = []
  jumped = 0
})
afterEach(async () => {
  await here.close()
  rmSync(folder, { recursive: true, force: true })
})

function retain(limits: AuditLimits): AuditRetention {
  const { store, audit, key, clock } = here
  retention = new AuditRetention({
    repository: store.audit,
    audit,
    anchor: { read: async () => noted },
    sessions: store.sessions,
    key,
    trusted: [raw()],
    delivered: () => delivered,
    limits,
    now: () => clock.now,
    monotonic: () => clock.now - jumped,
    onError: (error) => errors.push(error),
  })
  return retention
}
const rows = () => here.store.audit.range(0, 100_000)
/** Writes some events a day, each day closed by a checkpoint. */
async function days(count: number, each = 3): Promise<void> {
  for (let day = 0; day < count; day++) {
    for (let i = 0; i < each; i++) await here.audit.record('command', { object: `ls ${day} ${i}` })
    await here.audit.checkpoint()
    here.clock.now += DAY
  }
  noted = (await here.store.audit.last())!
}

/** Returns the results of both verifiers for the current log. */
async function verdict(trusted = [raw()], known: Head[] = []): Promise<AuditVerdict> {
  const path = join(folder, 'export.jsonl')
  const lines: string[] = []
  for await (const some of exportAudit(here.store.audit)) lines.push(some)
  writeFileSync(path, lines.join(''))
  const found = await verifyAudit(here.store.audit, { trusted, known })
  const other = standAloneAudit(path, {
    keys: trusted.map(keyOf),
    heads: known.map(({ sequence, hash }) => ({ sequence, hash: Buffer.from(hash).toString('hex') })),
  })
  expect([other.fault?.code, other.fault?.row]).toEqual([found.fault?.code, found.fault?.sequence])
  expect(other.rows).toBe(found.rows)
  return found
}

describe('retention of the audit log', () => {
  test('removes days that are over, behind a handover, and both verifiers go on from there', async () => {
    await days(10)
    const before = await rows()
    await retain({ keepDays: 4 }).enforce()
    expect(errors).toEqual([])
    const after = await rows()
    expect(after[0]!.sequence).toBe(25)
    expect(after.slice(0, before.length - 24)).toEqual(before.slice(24))
    const handover = JSON.parse(after.find(({ code }) => code === 'audit.handover')!.json)
    expect(handover.fields).toMatchObject({
      object: '24',
      count: 24,
      digest: Buffer.from(before[23]!.hash).toString('hex'),
    })
    expect(await verdict()).toMatchObject({ removed: 24, rows: after.length })
    // On the same day nothing more is done.
    await retention.enforce()
    expect(await rows()).toEqual(after)
    here.clock.now += 3 * DAY
    noted = await here.store.audit.last()
    await retain({ keepDays: 4 }).enforce()
    expect(errors).toEqual([])
    expect((await rows())[0]!.sequence).toBeGreaterThan(30)
    expect((await verdict()).fault).toBeUndefined()
  })

  test('does nothing unless it is told to', async () => {
    await days(10)
    await retain({ keepDays: 0 }).enforce()
    expect((await rows())[0]!.sequence).toBe(1)
  })

  test('archives first: the pieces and what is left are the whole log again', async () => {
    const archive = join(folder, 'archive')
    await days(6)
    await retain({ keepDays: 2, archive }).enforce()
    await days(4)
    await retain({ keepDays: 2, archive }).enforce()
    expect(errors).toEqual([])
    const files = readdirSync(archive).sort()
    expect(files).toHaveLength(2)
    expect(files[0]).toBe('audit-000000000001-000000000016.jsonl')
    const pieces = files.map((file) => readFileSync(join(archive, file), 'utf8'))
    for await (const lines of exportAudit(here.store.audit)) pieces.push(lines)
    const path = join(folder, 'whole.jsonl')
    writeFileSync(path, pieces.join(''))
    const whole = standAloneAudit(path, { keys: [keyOf(raw())] })
    expect(whole).toMatchObject({ ok: true, rows: (await here.store.audit.last())!.sequence })
    expect(whole.removed).toBeUndefined()
  })

  test('a crash in the middle of the removal is no fault, and the rest goes with the next run', async () => {
    await days(10)
    const { removeUpTo } = here.store.audit
    let calls = 0
    here.store.audit.removeUpTo = async (sequence) => {
      if (++calls > 1) throw new Error('it crashed')
      return await removeUpTo(sequence, 7)
    }
    await retain({ keepDays: 4 }).enforce()
    expect(errors).toHaveLength(1)
    expect((await rows())[0]!.sequence).toBe(8)
    expect(await verdict()).toMatchObject({ removed: 24 })
    here.store.audit.removeUpTo = removeUpTo
    await retention.enforce()
    expect((await rows())[0]!.sequence).toBe(25)
    expect((await verdict()).fault).toBeUndefined()
  })

  test('a receiver that is behind holds rows up, as long again and not for ever', async () => {
    await days(10)
    delivered = 5
    await retain({ keepDays: 2 }).enforce()
    // Rows older than four days are removed all the same.
    expect((await rows())[0]!.sequence).toBe(25)
    delivered = 29
    await retain({ keepDays: 2 }).enforce()
    expect((await rows())[0]!.sequence).toBe(29)
    delivered = undefined
    await retain({ keepDays: 2 }).enforce()
    expect((await rows())[0]!.sequence).toBe(33)
    expect((await verdict()).fault).toBeUndefined()
  })

  test('a session that runs keeps its rows', async () => {
    await days(2)
    await here.session(50, { begin: here.clock.now }, { open: true })
    await days(8)
    await retain({ keepDays: 2 }).enforce()
    expect((await rows())[0]!.sequence).toBe(9)
  })

  test('what it said of recordings that are there is said again: they verify, and one that is gone is missed', async () => {
    for (const number of [1, 2, 3]) await here.session(number)
    await days(10)
    await here.deletion.remove(idOf(2), {
      method: 'request',
      reason: 'asked for',
      tell: (fields) => here.audit.record('recording.deleted', { user: 'admin', ...fields }),
    })
    await days(1)
    for (let round = 0; round < 3; round++) {
      await retain({ keepDays: 2 }).enforce()
      expect(errors).toEqual([])
      const evidence = new Evidence()
      await verifyAudit(here.store.audit, { trusted: [raw()], onEvent: (event) => evidence.add(event) })
      expect(await crossCheck(here.root, await listed(here.root), evidence)).toEqual([])
      expect((await gatherEvidence(here.store.audit, idOf(1))).sessions.get(idOf(1))?.closed).toBeDefined()
      await days(5)
    }
    const evidence = await gatherEvidence(here.store.audit, undefined)
    const [gone] = (await listed(here.root)).filter(({ session }) => session === idOf(3))
    rmSync(gone!.directory, { recursive: true })
    expect(await crossCheck(here.root, await listed(here.root), evidence)).toMatchObject([
      { code: 'missing_session', session: idOf(3) },
    ])
  })

  const digest = { a: 'a'.repeat(64), b: 'b'.repeat(64) }
  test.each<[string, EventCode, EventFields, EventFields, boolean]>([
    [
      'of what was sealed stands',
      'recording.sealed',
      { digest: digest.a, size: 500 },
      { digest: digest.a },
      true,
    ],
    [
      'of what was put in its place does not',
      'recording.sealed',
      { digest: digest.a, size: 500 },
      { digest: digest.b },
      false,
    ],
    [
      'of what was lost does not',
      'recording.failed',
      { result: 'lost', reason: 'cut' },
      { digest: digest.b },
      false,
    ],
    [
      'of less than was noted does not',
      'recording.progress',
      { object: `${idOf(7)}:500:${digest.a}:1000` },
      { size: 400 },
      false,
    ],
    [
      'of all that was noted stands',
      'recording.progress',
      { object: `${idOf(7)}:500:${digest.a}:1000` },
      { size: 500 },
      true,
    ],
  ])(
    'a tombstone %s, though the rows that it was held against are removed',
    async (_, code, had, gone, stands) => {
      const session = idOf(7)
      await here.audit.record('session.open', { session })
      await here.audit.record(code, code === 'recording.progress' ? had : { session, ...had })
      await days(6)
      await here.audit.record('recording.deleted', { session, method: 'age', reason: 'old', ...gone })
      await days(1)
      const deleted = async () => {
        const { deleted: says } = (await gatherEvidence(here.store.audit, undefined)).sessions.get(session)!
        await verdict()
        const there = standAloneAudit(join(folder, 'export.jsonl'), { keys: [keyOf(raw())] })
        expect(there.sessions.get(session)?.deleted).toBe(says)
        return says !== undefined
      }
      expect(await deleted()).toBe(stands)
      await retain({ keepDays: 3 }).enforce()
      expect(errors).toEqual([])
      expect(await here.events(code)).toEqual([])
      expect(await here.events('recording.deleted')).toHaveLength(1)
      expect(await deleted()).toBe(stands)
    },
  )

  test.each<[string, () => Promise<void>]>([
    [
      'a row was changed',
      async () => {
        const { range } = here.store.audit
        here.store.audit.range = async (from, limit) =>
          (await range(from, limit)).map((row) =>
            row.sequence === 5 ? { ...row, json: row.json.replace('ls', 'id') } : row,
          )
      },
    ],
    ['the beginning was cut off', async () => void (await here.store.audit.removeUpTo(6, 100))],
  ])('removes and signs nothing when %s', async (_, change) => {
    await days(10)
    await change()
    await retain({ keepDays: 4 }).enforce()
    expect(errors[0]?.message).toMatch(/not in order, and nothing of it is removed/)
    expect((await rows()).some(({ code }) => code === 'audit.handover')).toBe(false)
  })

  test('removes nothing without the note of how far the log reaches, or when the clock has jumped', async () => {
    await days(10)
    noted = undefined
    await retain({ keepDays: 4 }).enforce()
    expect((await rows())[0]!.sequence).toBe(1)
    expect(errors).toEqual([])
    noted = await here.store.audit.last()
    retain({ keepDays: 4 })
    jumped = DAY
    await retention.enforce()
    expect((await rows())[0]!.sequence).toBe(1)
    expect(errors[0]?.message).toMatch(/the clock has jumped/)
  })
})

describe('a cut that nobody has signed', () => {
  test('is found, and a handover by another key does not help', async () => {
    await days(10)
    const all = await rows()
    await here.store.audit.removeUpTo(24, 100)
    expect((await verdict()).fault).toMatchObject({ code: 'missing_events', sequence: 1 })
    const forged = new MemoryAudit()
    forged.rows = all.slice(24)
    const other = generateKeyPairSync('ed25519').privateKey
    const fields = handoverFields({ last: all[23]!, count: 24 }, other)
    forged.rows.push(
      ...chainRows(forged.rows.at(-1), [{ time: here.clock.now, code: 'audit.handover', fields }]),
    )
    expect((await verifyAudit(forged, { trusted: [raw()] })).fault).toMatchObject({ code: 'missing_events' })
  })

  test('behind one that was signed is found, as is another number of rows in the statement', async () => {
    await days(10)
    await retain({ keepDays: 4 }).enforce()
    const all = await rows()
    const cut = new MemoryAudit()
    cut.rows = all.slice(2)
    expect((await verifyAudit(cut, { trusted: [raw()] })).fault).toMatchObject({ code: 'missing_events' })
    const changed = new MemoryAudit()
    changed.rows = all.map((row) =>
      row.code === 'audit.handover' ? { ...row, json: row.json.replace('"count":24', '"count":23') } : row,
    )
    expect((await verifyAudit(changed, { trusted: [raw()] })).fault?.code).toBe('missing_events')
  })

  test('a row that is known from elsewhere has to be the one that was handed over', async () => {
    await days(10)
    await retain({ keepDays: 4 }).enforce()
    const known = [{ sequence: 24, hash: new Uint8Array(32) }]
    expect((await verifyAudit(here.store.audit, { trusted: [raw()], known })).fault?.code).toBe(
      'replaced_log',
    )
  })
})
