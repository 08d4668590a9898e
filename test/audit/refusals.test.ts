import { beforeEach, describe, expect, test } from 'vitest'
import type { AuditEvent, EventCode } from '../../src/audit/events/catalogue.ts'
import type { EventFields } from '../../src/audit/events/fields.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { Refusals } from '../../src/audit/refusals.ts'
import { MemoryAudit } from './memory.ts'

/** Time, set by tests. */
let time: number
let due: { at: number; action: () => void }[]
const after = (ms: number, action: () => void) => {
  const one = { at: time + ms, action }
  due.push(one)
  return () => {
    due = due.filter((other) => other !== one)
  }
}
function pass(ms: number): void {
  for (const end = time + ms; ; ) {
    const next = due.toSorted((a, b) => a.at - b.at)[0]
    if (!next || next.at > end) {
      time = end
      return
    }
    due = due.filter((one) => one !== next)
    time = Math.max(time, next.at)
    next.action()
  }
}

/** Milliseconds by which the wall clock was set back. */
let set: number
let refusals: Refusals
let folded: AuditEvent[]
let atOnce: number
beforeEach(() => {
  time = 1_795_000_000_000
  due = []
  set = 0
  folded = []
  atOnce = 0
  refusals = new Refusals({ now: () => time - set, monotonic: () => time, after })
  refusals.tell = (event) => folded.push(event)
})
function refuse(code: EventCode, fields: EventFields): void {
  if (!refusals.takes({ time, code, fields })) atOnce++
}
const wrong = { user: 'ops1', client_ip: '192.0.2.7', protocol: 'SSH', method: 'password', reason: 'wrong' }
const counts = () => folded.reduce((sum, { fields }) => sum + Number(fields.count), 0)

describe('refusals', () => {
  test('of one kind are told one by one at first, then as one event with their count', () => {
    for (let i = 0; i < 1000; i++) {
      refuse('auth.failure', { ...wrong, client_port: i })
      pass(1)
    }
    expect(atOnce).toBe(10)
    pass(10_000)
    expect(folded).toEqual([
      {
        time: expect.any(Number),
        code: 'auth.failure',
        fields: {
          ...wrong,
          count: 990,
          first: '2026-11-18T11:06:40.010Z',
          last: '2026-11-18T11:06:40.999Z',
        },
      },
    ])
  })

  test('that go on are told more and more seldom, once a minute at last; the next after a pause is told at once', () => {
    for (let i = 0; i < 600; i++) {
      refuse('auth.failure', wrong)
      pass(1000)
    }
    expect(folded.length).toBeGreaterThan(8)
    expect(folded.length).toBeLessThan(14)
    pass(200_000)
    expect(atOnce + counts()).toBe(600)
    const before = atOnce
    refuse('auth.failure', wrong)
    expect(atOnce).toBe(before + 1)
  })

  test('with a new name each time are bounded by network, and none is forgotten', () => {
    for (let i = 0; i < 100_000; i++) refuse('auth.failure', { ...wrong, user: `user${i}` })
    expect(atOnce).toBe(60)
    pass(10_000)
    expect(folded).toHaveLength(1)
    expect(folded[0]).toMatchObject({
      fields: { client_ip: '192.0.2.7', protocol: 'SSH', count: 99_940 },
    })
    expect(folded[0]?.fields.user).toBeUndefined()
  })

  test('from everywhere are bounded, in memory and in the log, and none is forgotten', () => {
    const all = 50_000
    for (let i = 0; i < all; i++) {
      const address = `2001:db8:${(i % 5000).toString(16)}::1`
      refuse('auth.failure', { ...wrong, user: `user${i}`, client_ip: address })
    }
    expect(atOnce).toBeLessThanOrEqual(1000)
    pass(60_000)
    expect(folded.length).toBeLessThanOrEqual(101)
    expect(atOnce + counts()).toBe(all)
  })

  test('for a day make some thousands of rows, not millions', () => {
    let refused = 0
    for (let second = 0; second < 86_400; second++) {
      for (let i = 0; i < 5; i++) {
        refuse('auth.failure', { ...wrong, user: `user${refused % 50}` })
        refused++
      }
      pass(1000)
    }
    pass(120_000)
    expect(atOnce + counts()).toBe(refused)
    expect(atOnce + folded.length).toBeLessThan(110_000)
  })

  test('in a session have an allowance of their own, and keep whose they are', () => {
    const inside = { session: '01A', user: 'ops1', client_ip: '192.0.2.7', protocol: 'SSH' }
    for (let i = 0; i < 1000; i++) refuse('file.denied', { ...inside, path: `/etc/${i}`, reason: 'rule' })
    expect(atOnce).toBe(100)
    // Sign-ins of other users are not affected.
    refuse('auth.failure', wrong)
    expect(atOnce).toBe(101)
    pass(10_000)
    expect(folded).toEqual([
      expect.objectContaining({
        code: 'file.denied',
        fields: expect.objectContaining({ ...inside, count: 900 }),
      }),
    ])
  })

  test('from many networks with invented names do not take from a session, nor from a network elsewhere', () => {
    for (let i = 0; i < 3000; i++) {
      refuse('auth.failure', { ...wrong, user: `user${i % 50}`, client_ip: `203.0.113.${i % 6}` })
    }
    const six = atOnce
    for (let i = 0; i < 6000; i++) {
      const address = `2001:db8:7:${i.toString(16)}::1`
      refuse('auth.failure', { ...wrong, user: `user${i}`, client_ip: address })
    }
    expect(six).toBeLessThanOrEqual(120)
    expect(atOnce - six).toBeLessThanOrEqual(120)
    const inside = { session: '01A', user: 'ops1', client_ip: '203.0.113.1', protocol: 'SFTP' }
    const now = [
      refusals.takes({ time, code: 'file.denied', fields: { ...inside, path: '/etc/shadow' } }),
      refusals.takes({ time, code: 'auth.failure', fields: { ...wrong, user: 'admin' } }),
    ]
    expect(now).toEqual([false, false])
    pass(10_000)
    // Five networks of the neighbourhood, and its others together.
    expect(folded.filter(({ fields }) => fields.client_ip?.toString().startsWith('2001:'))).toHaveLength(6)
  })

  test('the first of its code in a session is told at once, whatever else was refused there, and in how many others', () => {
    const inside = { user: 'ops1', client_ip: '192.0.2.7', protocol: 'SSH' }
    for (let i = 0; i < 20_000; i++) {
      refuse('file.denied', { ...inside, session: `0${i % 400}`, path: `/etc/${i}`, reason: 'rule' })
    }
    const fields = { ...inside, session: '01', reason: 'no right' }
    expect(refusals.takes({ time, code: 'channel.denied', fields })).toBe(false)
    expect(refusals.takes({ time, code: 'file.denied', fields: { ...fields, session: '0new' } })).toBe(false)
  })

  test('keep what they have in common when they are counted together', () => {
    for (let i = 0; i < 60; i++) refuse('auth.failure', { ...wrong, user: `user${i}` })
    for (let i = 0; i < 9; i++) refuse('auth.failure', { ...wrong, user: 'admin', client_port: i })
    pass(10_000)
    const [{ fields }] = folded as [AuditEvent]
    expect(fields).toMatchObject({ ...wrong, user: 'admin', count: 9 })
    refuse('auth.failure', { ...wrong, user: 'admin' })
    for (let i = 0; i < 9; i++) refuse('auth.failure', { ...wrong, user: 'admin', reason: `flaw ${i}` })
    pass(60_000)
    expect(folded[1]?.fields).toMatchObject({
      user: 'admin',
      method: 'password',
      reason: expect.stringMatching(/^several/),
    })
  })

  test('are told in time though the clock is set back', () => {
    for (let i = 0; i < 20; i++) refuse('auth.failure', wrong)
    set = 86_400_000
    pass(11_000)
    expect(counts()).toBe(10)
    pass(30_000)
    for (let i = 0; i < 20; i++) refuse('auth.failure', { ...wrong, user: 'other' })
    pass(11_000)
    expect(counts()).toBe(20)
  })

  test('are what is folded, and nothing else', () => {
    for (let i = 0; i < 100; i++) {
      refuse('auth.locked', wrong)
      refuse('auth.success', wrong)
      refuse('hostkey.changed', wrong)
    }
    expect(atOnce).toBe(300)
  })
})

describe('the audit log', () => {
  test('keeps room for what people do in sessions while refusals flood it', async () => {
    const repository = new MemoryAudit()
    const append = repository.append.bind(repository)
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    repository.append = async (rows) => {
      await opened
      await append(rows)
    }
    const audit = new AuditLog({ repository, now: () => ++time, refusals })
    refusals.tell({ time, code: 'auth.failure', fields: {} })
    const refused = Array.from({ length: 50_000 }, (_, i) =>
      audit.record('auth.failure', { ...wrong, client_ip: `10.${i % 250}.${Math.floor(i / 250)}.1` }),
    )
    const commands = Array.from({ length: 5000 }, () =>
      audit.record('command', { session: '01A', object: 'ls' }),
    )
    open()
    await Promise.all([...refused, ...commands])
    await audit.close()
    const rows = repository.rows.map(({ json }) => JSON.parse(json))
    expect(rows.filter(({ code }) => code === 'command')).toHaveLength(5000)
    const failures = rows.filter(({ code }) => code === 'auth.failure')
    expect(failures.length).toBeLessThan(1000)
    // The one above, and all of these.
    expect(failures.reduce((sum, { fields }) => sum + (fields.count ?? 1), 0)).toBe(50_001)
  })

  test('keeps the count of what could not be stored', async () => {
    const repository = new MemoryAudit()
    const audit = new AuditLog({ repository, now: () => ++time, refusals })
    for (let i = 0; i < 30; i++) await audit.record('auth.failure', wrong)
    repository.failure = new Error('disk I/O error')
    pass(15_000)
    await audit.flush()
    await new Promise((resolve) => setTimeout(resolve, 20))
    pass(15_000)
    await audit.flush()
    await audit.close()
    const counted = repository.rows.map(({ json }) => JSON.parse(json).fields.count ?? 1)
    expect(counted.reduce((sum, one) => sum + one, 0)).toBe(30)
  })
})
