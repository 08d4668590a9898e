import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { chainRows } from '../../src/audit/chain.ts'
import { AuditLog } from '../../src/audit/log.ts'
import type { After } from '../../src/audit/sink.ts'
import { type Fed, type FedOptions, feeding, hurried, MemorySink, removeFolders, until } from './feeding.ts'
import { MemoryAudit } from './memory.ts'

const DAY_MS = 24 * 60 * 60_000
const running: Fed[] = []
async function fed(sinks: MemorySink[], options?: FedOptions): Promise<Fed> {
  const one = await feeding(sinks, options)
  running.push(one)
  return one
}
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()))
  removeFolders()
})

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)
const last = ({ repository }: Fed) => repository.rows.at(-1)!.sequence
/** Returns the path of the only position file. */
const fileOf = ({ folder }: Fed) => join(folder, readdirSync(folder).find((name) => name.endsWith('.json'))!)
async function record(one: Fed, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, i) => one.record('command', { object: `${i}` })))
}

describe('a receiver', () => {
  test('that is new gets what comes from now on, and that is said', async () => {
    const first = await fed([new MemorySink('other')])
    await record(first, 5)
    await first.close()
    const sink = new MemorySink()
    const { repository, folder } = first
    const one = await fed([new MemorySink('other'), sink], { repository, folder })
    await one.record('service.start')
    await until(() => sink.received.length >= 2)
    expect(sink.received.map(({ code }) => code)).toEqual(['sink.begin', 'service.start'])
    expect(sink.received[0]).toMatchObject({
      fields: { object: 'memory', reason: expect.stringMatching(/^it is new here: .* from row 7 on$/) },
    })
  })

  test('that catches up beside another costs no second look into the log', async () => {
    const repository = new MemoryAudit()
    const sinks = [new MemorySink('one'), new MemorySink('other')]
    const first = await fed(sinks, { repository })
    await first.close()
    const beside = new AuditLog({ repository, now: Date.now })
    await Promise.all(upTo(3500).map((n) => beside.record('command', { object: `${n}` })))
    const ranges: number[] = []
    const { range } = repository
    repository.range = async (from, limit) => {
      if (limit > 1) ranges.push(from)
      return await range.call(repository, from, limit)
    }
    const { folder } = first
    await fed(sinks, { repository, folder })
    const end = repository.rows.at(-1)!.sequence
    await until(() => sinks.every(({ received }) => received.at(-1)?.sequence === end))
    for (const { sequences } of sinks) expect(sequences).toEqual(upTo(end))
    // All pieces but the last one, which is not full.
    const full = ranges.filter((from) => from + 200 <= end)
    expect(new Set(full).size).toBe(full.length)
    expect(full.length).toBeGreaterThan(10)
  })

  test('that goes away gets all of it when it is back, in order, and both are told', async () => {
    const sink = new MemorySink()
    const one = await fed([sink])
    await record(one, 3)
    await until(() => sink.received.length === 4)
    sink.leave()
    await until(() => one.events('sink.down').length === 1)
    await record(one, 700)
    expect(one.feed.queued).toBeGreaterThan(690)
    sink.isAway = false
    await until(() => one.events('sink.up').length === 1)
    await until(() => sink.received.length === last(one))
    expect(sink.sequences).toEqual(upTo(last(one)))
    expect(one.events('sink.up')[0]?.fields).toMatchObject({ object: 'memory', count: expect.any(Number) })
    expect(one.feed.queued).toBe(0)
    expect(one.events('sink.down')).toHaveLength(1)
  })

  test('that acknowledges rows that it was not sent gets them all the same', async () => {
    const sink = new MemorySink()
    sink.isLiar = true
    const one = await fed([sink])
    for (let i = 0; i < 5; i++) {
      await record(one, 3)
      await until(() => sink.received.length === last(one))
      expect(one.feed.position).toBeLessThanOrEqual(last(one))
    }
    await one.close()
    const { repository, folder } = one
    const two = await fed([sink], { repository, folder })
    await record(two, 3)
    await until(() => sink.received.length === last(two))
    expect(sink.sequences).toEqual(upTo(last(two)))
    expect(two.events('sink.begin')).toHaveLength(1)
  })

  test('gets again what it had not settled, and nothing else, after a hard stop', async () => {
    const sink = new MemorySink()
    const one = await fed([sink])
    await record(one, 20)
    await until(() => sink.received.length === 21)
    await until(() => JSON.parse(readFileSync(fileOf(one), 'utf8')).sequence === 21)
    sink.isSilent = true
    await record(one, 5)
    await until(() => sink.received.length === 26)
    // No close: the process is killed.
    const { repository, folder } = one
    const again = new MemorySink()
    const two = await fed([again], { repository, folder })
    await until(() => again.received.length >= 5)
    expect(again.sequences).toEqual([22, 23, 24, 25, 26])
    expect(two.events('sink.begin')).toHaveLength(1)
    sink.isSilent = false
  })

  test('gets what another process has appended, and what was appended while no broker ran', async () => {
    const sink = new MemorySink()
    const one = await fed([sink])
    const { repository, folder } = one
    await new AuditLog({ repository, now: Date.now }).record('secret.change', { object: 'beside' })
    await until(() => sink.received.some(({ fields }) => fields.object === 'beside'))
    await one.close()
    await new AuditLog({ repository, now: Date.now }).record('secret.change', { object: 'between' })
    const two = await fed([sink], { repository, folder })
    await until(() => sink.received.some(({ fields }) => fields.object === 'between'))
    expect(sink.sequences).toEqual(upTo(last(two)))
  })

  test('gets each row once, in its order and with its own time, while the clock jumps by a day and back', async () => {
    const sink = new MemorySink()
    const connects = vi.spyOn(sink, 'connect')
    const clock = { ahead: 0 }
    const now = () => Date.now() + clock.ahead
    const one = await fed([sink], { now })
    for (const ahead of [0, DAY_MS, -DAY_MS, 0]) {
      clock.ahead = ahead
      await record(one, 300)
      await until(() => sink.received.length === last(one))
      expect(Math.abs(sink.received.at(-1)!.time - now())).toBeLessThan(DAY_MS / 2)
    }
    expect(connects).toHaveBeenCalledTimes(1)
    sink.leave()
    await until(() => one.events('sink.down').length === 1)
    clock.ahead = DAY_MS
    await record(one, 300)
    clock.ahead = -DAY_MS
    sink.isAway = false
    await until(() => one.events('sink.up').length === 1)
    await until(() => sink.received.length === last(one))
    await one.close()
    const { repository, folder } = one
    clock.ahead = -2 * DAY_MS
    const two = await fed([sink], { repository, folder, now })
    await record(two, 3)
    await until(() => sink.received.length === last(two))
    expect(sink.sequences).toEqual(upTo(last(two)))
    expect(sink.received.map(({ time }) => time)).toEqual(repository.rows.map(({ time }) => time))
    expect(two.events('sink.begin')).toHaveLength(1)
    expect(two.events('sink.missed')).toEqual([])
  })

  test('that takes nothing holds up neither the others nor the log', async () => {
    const stuck = new MemorySink('stuck')
    stuck.isStuck = true
    const good = new MemorySink('good')
    const one = await fed([stuck, good])
    await record(one, 1000)
    await until(() => good.received.length === last(one))
    expect(good.sequences).toEqual(upTo(last(one)))
    expect(one.feeds.feeds.map(({ queued }) => queued)).toEqual([last(one), 0])
    expect(one.feeds.slowest).toBe(0)
    const begin = Date.now()
    await one.close()
    expect(Date.now() - begin).toBeLessThan(5000)
  })

  test('that stays goes on while one that takes nothing is drained', async () => {
    const stuck = new MemorySink('stuck')
    stuck.isStuck = true
    const stays = new MemorySink('stays')
    const connects = vi.spyOn(stays, 'connect')
    const drained: (() => void)[] = []
    const after: After = (ms, action) => {
      if (ms < 3000) return hurried(ms, action)
      drained.push(action)
      return () => undefined
    }
    const one = await fed([stuck, stays], { after })
    await record(one, 10)
    const comes = new MemorySink('comes')
    const replaced = one.feeds.replace([stays, comes])
    await record(one, 10)
    await until(() => stays.received.length === last(one))
    expect(comes.received).toEqual([])
    for (const drain of drained) drain()
    await replaced
    expect(one.feeds.areOf([stays, comes])).toBe(true)
    expect(one.feeds.areOf([stays])).toBe(false)
    expect(one.feeds.areOf([stays, stuck])).toBe(false)
    await one.record('service.stop')
    await until(() => stays.received.length === last(one) && comes.sequences.at(-1) === last(one))
    expect(stays.sequences).toEqual(upTo(last(one)))
    expect(connects).toHaveBeenCalledTimes(1)
    expect(one.events('sink.end').map(({ fields }) => fields.object)).toEqual(['stuck'])
    // It begins with the row after the change.
    expect(comes.sequences[0]).toBe(13)
  })

  test('that is replaced gets the rest first; one that is taken away gets what took it away', async () => {
    const stays = new MemorySink('stays')
    const goes = new MemorySink('goes')
    const one = await fed([stays, goes])
    await record(one, 300)
    await one.record('config.reload', { changes: 'syslog' })
    const reload = last(one)
    await one.feeds.replace([stays])
    expect(goes.sequences).toEqual(upTo(reload))
    await until(() => stays.received.some(({ code }) => code === 'sink.end'))
    expect(stays.sequences).toEqual(upTo(last(one)))
    expect(one.events('sink.end')[0]?.fields).toEqual({ object_type: 'syslog', object: 'goes', count: 0 })
    await one.close()
    expect(readdirSync(one.folder)).toHaveLength(1)
  })

  test('that is gone from the configuration at a start is named, with what it has not had', async () => {
    const goes = new MemorySink('goes')
    const one = await fed([goes])
    goes.leave()
    await record(one, 10)
    await one.close()
    const { repository, folder } = one
    const two = await fed([new MemorySink('stays')], { repository, folder })
    expect(two.events('sink.end')[0]?.fields).toMatchObject({ object: 'goes' })
    expect(two.events('sink.end')[0]?.fields.count).toBeGreaterThanOrEqual(10)
    await two.close()
    const three = await fed([new MemorySink('stays')], { repository, folder })
    expect(three.events('sink.end')).toHaveLength(1)
  })

  test('that was restored gets what came after the row of the backup', async () => {
    const first = await fed([new MemorySink('other')])
    await record(first, 8)
    await first.close()
    const sink = new MemorySink()
    await fed([sink], { repository: first.repository, begin: 4 })
    await until(() => sink.received.length >= 5)
    expect(sink.sequences.slice(0, 5)).toEqual([5, 6, 7, 8, 9])
  })

  test('twice in the configuration has two positions', async () => {
    const sinks = [new MemorySink(), new MemorySink()]
    const one = await fed(sinks)
    await record(one, 4)
    await until(() => sinks.every(({ received }) => received.length === 6))
    await one.close()
    expect(readdirSync(one.folder)).toHaveLength(2)
  })

  test('behind the beginning of a log that was cut is told what it missed', async () => {
    const sink = new MemorySink()
    const one = await fed([sink])
    await until(() => sink.received.length === 1)
    sink.leave()
    await record(one, 30)
    await one.close()
    const { repository, folder } = one
    repository.rows = repository.rows.filter(({ sequence }) => sequence > 20)
    const again = new MemorySink()
    again.isSilent = true
    const two = await fed([again], { repository, folder })
    await until(() => two.events('sink.missed').length === 1)
    // The gap is the same however often the connection breaks.
    again.leave()
    again.isAway = false
    again.isSilent = false
    await until(() => two.feed.position === last(two))
    expect(two.events('sink.missed')).toHaveLength(1)
    expect(two.events('sink.missed')[0]?.fields).toMatchObject({ count: 19, object: 'memory' })
    expect(again.sequences[0]).toBe(21)
    expect(two.feed.lost).toBe(19)
  })
})

describe('a position', () => {
  async function written(): Promise<Fed> {
    const one = await fed([new MemorySink()])
    await record(one, 1500)
    await one.close()
    return one
  }
  async function after(change: (file: string, one: Fed) => void): Promise<{ two: Fed; sink: MemorySink }> {
    const one = await written()
    change(fileOf(one), one)
    const sink = new MemorySink()
    const two = await fed([sink], { repository: one.repository, folder: one.folder })
    await two.record('service.stop')
    await until(() => sink.received.some(({ code }) => code === 'service.stop'))
    return { two, sink }
  }

  test.each<[string, (file: string, one: Fed) => void, RegExp, number]>([
    ['is torn', (file) => writeFileSync(file, readFileSync(file).subarray(0, 40)), /could not be read/, 502],
    ['is empty', (file) => writeFileSync(file, ''), /could not be read/, 502],
    [
      'was changed by hand',
      (file) => writeFileSync(file, readFileSync(file, 'utf8').replace('1501', '1499')),
      /could not be read/,
      502,
    ],
    ['is missing', (file) => rmSync(file), /its position is gone/, 502],
    [
      'has a check sum that anybody can make',
      (file) => {
        const { check, ...body } = JSON.parse(readFileSync(file, 'utf8'))
        const forged = { ...body, sequence: body.sequence - 1 }
        const sum = createHash('sha256').update(JSON.stringify(forged)).digest('hex')
        writeFileSync(file, JSON.stringify({ ...forged, check: sum }))
      },
      /could not be read/,
      502,
    ],
    [
      'is behind the end of the log',
      (_, one) => one.repository.rows.splice(1400),
      /was row 1501, which the audit log does not have/,
      401,
    ],
    [
      'is of another log',
      (_, { repository }) => {
        const before = repository.rows.at(-2)
        repository.rows.splice(-1, 1, ...chainRows(before, [{ time: 1, code: 'service.stop', fields: {} }]))
      },
      /was in another audit log, at row 1501/,
      502,
    ],
  ])('that %s is said, and what is sent is bounded', async (_, change, reason, first) => {
    const { two, sink } = await after(change)
    expect(two.events('sink.begin').at(-1)?.fields.reason).toMatch(reason)
    expect(sink.sequences[0]).toBe(first)
    expect(two.events('sink.missed').map(({ fields }) => fields)).toEqual([
      expect.objectContaining({ count: first - 1, reason: expect.stringMatching(reason) }),
    ])
  })

  test('of another receiver counts for that one only', async () => {
    const one = await fed([new MemorySink('ahead'), new MemorySink('behind')])
    await record(one, 3)
    await one.close()
    const [to = '', from = ''] = readdirSync(one.folder)
    writeFileSync(join(one.folder, to), readFileSync(join(one.folder, from)))
    const { repository, folder } = one
    const two = await fed([new MemorySink('ahead'), new MemorySink('behind')], { repository, folder })
    expect(two.events('sink.begin').at(-1)?.fields.reason).toMatch(/could not be read/)
    expect(two.events('sink.begin')).toHaveLength(3)
    // All rows are sent again: none is missed.
    expect(two.events('sink.missed')).toHaveLength(0)
  })

  test('that is removed with its receiver from the configuration does not hide it', async () => {
    const one = await written()
    rmSync(fileOf(one))
    const { repository, folder } = one
    const rows = last(one)
    const two = await fed([new MemorySink('other')], { repository, folder })
    expect(two.events('sink.end').map(({ fields }) => fields)).toEqual([
      { object_type: 'syslog', object: 'memory', count: rows + 1 },
    ])
    await two.close()
    const three = await fed([new MemorySink('other')], { repository, folder })
    expect(three.events('sink.end')).toHaveLength(1)
  })

  test('counts for retention while receivers are replaced', async () => {
    const stuck = new MemorySink('stuck')
    stuck.isStuck = true
    const one = await fed([stuck])
    await record(one, 20)
    const seen = new Set<number | undefined>()
    let isReplaced = false
    const replaced = one.feeds.replace([stuck]).then(() => {
      isReplaced = true
    })
    while (!isReplaced) {
      seen.add(one.feeds.slowest)
      await setImmediate()
    }
    await replaced
    expect([...seen]).toEqual([0])
  })

  test('is whole at every moment', async () => {
    const sink = new MemorySink()
    const one = await fed([sink])
    const file = fileOf(one)
    for (let i = 0; i < 50; i++) {
      await record(one, 3)
      const { check, sequence } = JSON.parse(readFileSync(file, 'utf8'))
      expect(check).toMatch(/^[0-9a-f]{64}$/)
      expect(sequence).toBeLessThanOrEqual(last(one))
      await sleep(2)
    }
    expect(one.errors).toEqual([])
  })
})
