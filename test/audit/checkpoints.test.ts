/** The signed audit log: manipulations by the owner of the database, and the fault reported for each. */
import { Buffer } from 'node:buffer'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { rawPublicKey } from '../../recordings/container/format/signature.ts'
import { chainCheckpoint, chainRows, type Head } from '../../src/audit/chain.ts'
import { CHECKPOINT_MS, CHECKPOINT_ROWS } from '../../src/audit/checkpoint.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { type AuditVerifyOptions, anchorFault, MAX_UNSIGNED, verifyAudit } from '../../src/audit/verify.ts'
import type { AuditRow } from '../../src/store/store.ts'
import { MemoryAudit } from './memory.ts'

const key = generateKeyPairSync('ed25519').privateKey
const trusted = [rawPublicKey(key)]

interface Setting {
  repository: MemoryAudit
  audit: AuditLog
  noted: Head[]
  errors: Error[]
  timers: { ms: number; action: () => void }[]
}

function setting(repository = new MemoryAudit(), signing: KeyObject = key): Setting {
  const noted: Head[] = []
  const errors: Error[] = []
  const timers: Setting['timers'] = []
  let time = 1_795_000_000_000
  const audit = new AuditLog({
    repository,
    now: () => ++time,
    checkpoints: {
      key: signing,
      anchor: { note: async (head) => void noted.push(head) },
      onError: (error) => errors.push(error),
      after(ms, action) {
        const timer = { ms, action }
        timers.push(timer)
        return () => void timers.splice(timers.indexOf(timer), 1)
      },
    },
  })
  return { repository, audit, noted, errors, timers }
}

const codes = ({ repository }: Setting) => repository.rows.map(({ code }) => code)
const faultOf = async (rows: AuditRow[], options: AuditVerifyOptions = {}) => {
  const repository = new MemoryAudit()
  repository.rows = rows
  return (await verifyAudit(repository, { trusted, ...options })).fault
}

describe('checkpoints are written', () => {
  test('behind so many rows, at once, in the same commit', async () => {
    const here = setting()
    await Promise.all(Array.from({ length: CHECKPOINT_ROWS }, () => here.audit.record('command', {})))
    expect(codes(here).filter((code) => code === 'audit.checkpoint')).toHaveLength(1)
    expect(codes(here).at(-1)).toBe('audit.checkpoint')
    expect(here.repository.groups).toEqual([CHECKPOINT_ROWS + 1])
    await here.audit.flush()
    expect(here.noted).toMatchObject([{ sequence: CHECKPOINT_ROWS + 1 }])
  })

  test('a while after an event, once, and not again while nothing happens', async () => {
    const here = setting()
    await here.audit.record('command', {})
    await here.audit.record('command', {})
    expect(here.timers).toMatchObject([{ ms: CHECKPOINT_MS }])
    here.timers.pop()?.action()
    await here.audit.flush()
    await here.audit.checkpoint()
    expect(codes(here)).toEqual(['command', 'command', 'audit.checkpoint'])
    expect(here.timers).toEqual([])
  })

  test('at the stop, and never by a log that wrote nothing', async () => {
    const here = setting()
    await here.audit.record('service.stop', {})
    await here.audit.close()
    expect(codes(here)).toEqual(['service.stop', 'audit.checkpoint'])
    const idle = setting(here.repository)
    await idle.audit.close()
    expect(codes(here)).toHaveLength(2)
  })

  test('for all that stands before, what another process wrote and a crash left too', async () => {
    const crashed = setting()
    await crashed.audit.record('command', {})
    const here = setting(crashed.repository)
    await here.audit.record('service.start', {})
    await crashed.audit.record('command', {})
    await here.audit.checkpoint()
    expect(await verifyAudit(here.repository, { trusted })).toMatchObject({
      rows: 4,
      checkpoints: 1,
      unsigned: 0,
    })
  })

  test('and told of when they cannot be: the events are stored, the next one tries again', async () => {
    const here = setting()
    await here.audit.record('command', {})
    here.repository.failure = new Error('disk I/O error')
    await here.audit.checkpoint()
    expect(here.errors).toHaveLength(1)
    await here.audit.record('command', {})
    await here.audit.checkpoint()
    expect(codes(here)).toEqual(['command', 'command', 'audit.checkpoint'])
  })

  test('with what goes to the sinks: the hash that they sign', async () => {
    const here = setting()
    await here.audit.record('command', {})
    await here.audit.checkpoint()
    const [event, checkpoint] = here.repository.rows
    expect(JSON.parse(checkpoint?.json ?? '')).toMatchObject({
      code: 'audit.checkpoint',
      fields: {
        digest: Buffer.from(event?.hash ?? []).toString('hex'),
        signature: expect.stringMatching(/^[A-Za-z0-9+/]{86}==$/),
      },
    })
  })
})

describe('verify names', () => {
  let rows: AuditRow[]
  let anchor: Head
  beforeEach(async () => {
    const here = setting()
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 4; i++) await here.audit.record('command', { object: `ls ${round} ${i}` })
      await here.audit.checkpoint()
    }
    rows = here.repository.rows
    anchor = here.noted.at(-1)!
  })
  /** Rebuilds the rows from `from` on, with all hashes repaired, by a forger with this key or none. */
  const rewritten = (from: number, events: AuditRow[], by?: KeyObject): AuditRow[] => {
    const made = rows.slice(0, from)
    for (const { code, time, json } of events) {
      const fields = JSON.parse(json).fields
      if (code === 'audit.checkpoint' && by) made.push(chainCheckpoint(made.at(-1), time, by).row)
      else made.push(...chainRows(made.at(-1), [{ time, code: code as 'command', fields }]))
    }
    return made
  }

  test('nothing where nothing is', async () => {
    expect(rows).toHaveLength(15)
    expect(await faultOf(rows, { known: [anchor] })).toBeUndefined()
  })

  test('an event that was taken out, with all hashes repaired', async () => {
    expect(await faultOf(rewritten(6, rows.slice(7)))).toMatchObject({ code: 'bad_signature', sequence: 9 })
  })

  test('a log that somebody else signed', async () => {
    const stranger = generateKeyPairSync('ed25519').privateKey
    const forged = rewritten(6, rows.slice(7), stranger)
    expect(await faultOf(forged)).toMatchObject({ code: 'unknown_signer', sequence: 9 })
    expect(await faultOf(forged, { trusted: [rawPublicKey(stranger)] })).toMatchObject({
      code: 'unknown_signer',
      sequence: 5,
    })
  })

  test('a checkpoint of another place', async () => {
    expect(await faultOf(rewritten(4, [rows[9]!, ...rows.slice(5)]))).toMatchObject({
      code: 'bad_signature',
      sequence: 5,
    })
  })

  test('a tail that was cut, at every row that the last checkpoint covers', async () => {
    for (let length = 0; length < rows.length; length++) {
      expect(await faultOf(rows.slice(0, length), { known: [anchor] })).toMatchObject({
        code: 'cut_tail',
        sequence: length + 1,
      })
    }
  })

  test('a log that was written anew without its checkpoints', async () => {
    const without = rewritten(
      0,
      rows.filter(({ code }) => code !== 'audit.checkpoint'),
    )
    expect(await faultOf(without, { known: [anchor] })).toMatchObject({ code: 'cut_tail' })
    const longer = rewritten(0, [...without, ...without])
    expect(await faultOf(longer, { known: [anchor] })).toMatchObject({ code: 'replaced_log', sequence: 15 })
  })

  test('events put behind the end in a number that the broker never leaves unsigned', async () => {
    const more = Array.from({ length: MAX_UNSIGNED + 1 }, () => rows[0]!)
    expect(await faultOf(rewritten(15, more.slice(1)))).toBeUndefined()
    expect(await faultOf(rewritten(15, more))).toMatchObject({ code: 'unsigned_events' })
    expect(await faultOf(rewritten(0, more))).toMatchObject({ code: 'unsigned_events' })
  })

  test('swapped and repeated events', async () => {
    const swapped = rows.with(5, { ...rows[6]!, sequence: 6 }).with(6, { ...rows[5]!, sequence: 7 })
    expect(await faultOf(swapped)).toMatchObject({ code: 'misplaced_event', sequence: 6 })
    const repeated = rows.with(6, { ...rows[5]!, sequence: 7 })
    expect(await faultOf(repeated)).toMatchObject({ code: 'misplaced_event', sequence: 7 })
  })

  test('an anchor that is gone', async () => {
    const repository = new MemoryAudit()
    repository.rows = rows
    const verdict = await verifyAudit(repository, { trusted })
    expect(anchorFault(verdict, anchor).fault).toBeUndefined()
    expect(anchorFault(verdict, undefined).fault).toMatchObject({ code: 'missing_anchor' })
    // A log rewritten without checkpoints needs an anchor.
    repository.rows = rewritten(
      0,
      rows.filter(({ code }) => code !== 'audit.checkpoint'),
    )
    const without = await verifyAudit(repository, { trusted })
    expect(anchorFault(without, undefined).fault).toMatchObject({ code: 'missing_anchor' })
    expect(anchorFault(await verifyAudit(new MemoryAudit(), { trusted }), undefined).fault).toBeUndefined()
  })
})
