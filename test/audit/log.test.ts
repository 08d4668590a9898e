import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { canonicalJson, chainRows, type StoredEvent } from '../../src/audit/chain.ts'
import type { EventCode } from '../../src/audit/events/catalogue.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { type AuditFault, verifyAudit } from '../../src/audit/verify.ts'
import { openStore } from '../../src/store/open.ts'
import { MemoryAudit } from './memory.ts'

let repository: MemoryAudit
let time = 0
const now = () => ++time
beforeEach(() => {
  repository = new MemoryAudit()
  time = 1_795_000_000_000
})

describe('record', () => {
  test('resolves only when the event is stored, then tells of it', async () => {
    const told: StoredEvent[] = []
    const audit = new AuditLog({ repository, now, onStored: (events) => told.push(...events) })
    const done = audit.record('auth.success', { user: 'ops1', method: 'password' })
    expect(repository.rows).toHaveLength(0)
    expect(told).toHaveLength(0)
    await done
    expect(repository.rows).toHaveLength(1)
    await audit.flush()
    expect(told).toEqual([
      {
        sequence: 1,
        time: 1_795_000_000_001,
        code: 'auth.success',
        fields: { user: 'ops1', method: 'password' },
      },
    ])
  })

  test('puts events that arrive during a commit into the next one, in order', async () => {
    const audit = new AuditLog({ repository, now })
    const first = audit.record('service.start', {})
    await new Promise((resolve) => setTimeout(resolve, 1))
    const rest = Array.from({ length: 1200 }, (_, i) => audit.record('command', { size: i }))
    await Promise.all([first, ...rest])
    expect(repository.groups).toEqual([1, 500, 500, 200])
    expect(repository.rows.slice(1).map(({ json }) => JSON.parse(json).fields.size)).toEqual([...rest.keys()])
    expect(await verifyAudit(repository)).toMatchObject({ rows: 1201 })
  })

  test('stores the same event of two processes twice, in the same millisecond too', async () => {
    const logs = [1, 2].map(() => new AuditLog({ repository, now: () => 1_795_000_000_000 }))
    await Promise.all(logs.map((audit) => audit.record('auth.failure', { user: 'ops1' })))
    expect(repository.rows).toHaveLength(2)
    expect(await verifyAudit(repository)).toMatchObject({ rows: 2 })
  })

  test('rejects when the store fails, tells nobody, and goes on with a whole chain', async () => {
    const told: StoredEvent[] = []
    const audit = new AuditLog({ repository, now, onStored: (events) => told.push(...events) })
    await audit.record('service.start', {})
    repository.failure = new Error('disk I/O error')
    await expect(audit.record('session.open', { user: 'ops1' })).rejects.toThrow(
      'audit log could not be written',
    )
    await audit.record('service.stop', {})
    await audit.flush()
    expect(told.map(({ code }) => code)).toEqual(['service.start', 'service.stop'])
    expect(await verifyAudit(repository)).toMatchObject({ rows: 2 })
  })

  test('stores once what was committed although the answer was lost', async () => {
    const audit = new AuditLog({ repository, now })
    repository.lostAnswer = true
    await audit.record('service.start', {})
    await audit.record('service.stop', {})
    expect(await verifyAudit(repository)).toMatchObject({ rows: 2, head: expect.any(String) })
  })

  test('goes behind the rows of another process that was faster', async () => {
    const broker = new AuditLog({ repository, now })
    const command = new AuditLog({ repository, now })
    await broker.record('service.start', {})
    await command.record('secret.change', {})
    await Promise.all([broker.record('command', {}), command.record('command', {})])
    expect(repository.rows).toHaveLength(4)
    expect(await verifyAudit(repository)).toMatchObject({ rows: 4 })
  })

  test('refuses a code or a field that the catalogue does not know', async () => {
    const audit = new AuditLog({ repository, now })
    await expect(audit.record('toString' as EventCode, {})).rejects.toThrow('no event is called toString')
    await expect(audit.record('command', { shoe: 'x' } as object)).rejects.toThrow(
      'no event field is called shoe',
    )
    await expect(audit.record('command', { path: { a: 1 } } as object)).rejects.toThrow('expected text')
    await expect(audit.record('command', { size: Number.NaN })).rejects.toThrow('finite')
    expect(repository.rows).toHaveLength(0)
  })

  test('refuses more events than it can hold while the store hangs', async () => {
    repository.append = () => new Promise(() => {})
    const audit = new AuditLog({ repository, now })
    const refused: string[] = []
    for (let i = 0; i < 10_700; i++) {
      audit.record('command', {}).catch((error: Error) => refused.push(error.message))
      if (i === 600) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
    expect(refused.length).toBeGreaterThan(0)
    expect(new Set(refused)).toEqual(new Set(['the audit log cannot keep up: too many events wait']))
  })

  test('continues the chain after a restart', async () => {
    await new AuditLog({ repository, now }).record('service.stop', {})
    await new AuditLog({ repository, now }).record('service.start', {})
    expect(await verifyAudit(repository)).toMatchObject({ rows: 2 })
  })
})

describe('verify', () => {
  const fill = async (count: number) => {
    const audit = new AuditLog({ repository, now })
    await Promise.all(Array.from({ length: count }, (_, i) => audit.record('command', { object: `ls ${i}` })))
  }

  test('an empty log is in order', async () => {
    expect(await verifyAudit(repository)).toEqual({ rows: 0, checkpoints: 0, unsigned: 0 })
  })

  test('a long log is in order', async () => {
    await fill(2500)
    expect(await verifyAudit(repository)).toEqual({
      rows: 2500,
      checkpoints: 0,
      unsigned: 2500,
      head: Buffer.from(repository.rows.at(-1)!.hash).toString('hex'),
    })
  })

  test.each<[string, (rows: MemoryAudit['rows']) => void, number, AuditFault, RegExp]>([
    [
      'a changed byte',
      (rows) => (rows[5]!.json = rows[5]!.json.replace('ls 5', 'ls 6')),
      6,
      'changed_event',
      /hash does not fit/,
    ],
    [
      'a changed hash',
      (rows) => (rows[5]!.hash = new Uint8Array(32)),
      6,
      'changed_event',
      /hash does not fit/,
    ],
    [
      'a removed row',
      (rows) => rows.splice(5, 1),
      6,
      'missing_events',
      /row 6 is missing: the next one is 7/,
    ],
    ['a removed first row', (rows) => rows.splice(0, 1), 1, 'missing_events', /row 1 is missing/],
    [
      'a row before the first',
      (rows) => rows.unshift({ ...rows[0]!, sequence: 0 }),
      1,
      'missing_events',
      /the next one is 0/,
    ],
    ['a changed column code', (rows) => (rows[5]!.code = 'auth.success'), 6, 'bad_event', /column differs/],
    ['a changed column time', (rows) => (rows[5]!.time += 1), 6, 'bad_event', /column differs/],
    [
      'two rows swapped',
      (rows) => {
        const json = rows[5]!.json
        rows[5]!.json = rows[6]!.json
        rows[6]!.json = json
      },
      6,
      'misplaced_event',
      /holds the event of row 7/,
    ],
    [
      'a row that was written anew with its hash',
      (rows) => Object.assign(rows[5]!, chainRows(rows[4], [{ time: 1, code: 'command', fields: {} }])[0]),
      7,
      'changed_event',
      /hash does not fit/,
    ],
  ])('names %s', async (_, change, sequence, code, message) => {
    await fill(10)
    change(repository.rows)
    const { rows, fault } = await verifyAudit(repository)
    expect(fault).toEqual({ code, sequence, message: expect.stringMatching(message) })
    expect(rows).toBe(sequence - 1)
  })

  test('the JSON that is hashed does not depend on the order of the fields', () => {
    const event = { sequence: 1, time: 2, code: 'command' } as const
    expect(canonicalJson({ ...event, fields: { user: 'a', object: 'b' } })).toBe(
      '{"code":"command","fields":{"object":"b","user":"a"},"sequence":1,"time":2}',
    )
    expect(canonicalJson({ ...event, fields: { object: 'b', user: 'a' } })).toBe(
      canonicalJson({ ...event, fields: { user: 'a', object: 'b' } }),
    )
  })
})

test('the chain stands in the real database', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-audit-'))
  const store = await openStore({ path: join(folder, 'a.db') })
  try {
    const audit = new AuditLog({ repository: store.audit, now })
    await Promise.all(
      Array.from({ length: 1500 }, (_, i) =>
        audit.record('command', { session: i % 2 ? 'odd' : 'even', object: 'é\n' }),
      ),
    )
    expect(await verifyAudit(store.audit)).toMatchObject({ rows: 1500 })
    expect(await store.audit.ofSession('odd', 10)).toHaveLength(10)
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
})
