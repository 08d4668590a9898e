import { afterEach, describe, expect, test } from 'vitest'
import type { AccountingRecord } from '../../src/accounting/record.ts'
import { type AccountingSender, RecordRefused } from '../../src/accounting/sender.ts'
import { AccountingSink, type AccountingSinkOptions } from '../../src/accounting/sink.ts'
import type { EventFields } from '../../src/audit/events/fields.ts'
import { type Fed, type FedOptions, feeding, hurried, removeFolders, until } from '../audit/feeding.ts'

class MemorySender implements AccountingSender {
  kinds: readonly AccountingRecord['kind'][] = ['start', 'interim', 'stop', 'command']
  received: AccountingRecord[] = []
  isAway = false
  /** Set to accept connections and confirm nothing. */
  isMute = false
  /** Records that it refuses, by their command. */
  refused = ''
  reached = 0
  under = 0
  most = 0

  async reach(): Promise<void> {
    if (this.isAway) throw new Error('it is away')
    this.reached++
  }

  async send(record: AccountingRecord): Promise<void> {
    this.most = Math.max(this.most, ++this.under)
    await new Promise(setImmediate)
    this.under--
    if (this.isAway || this.isMute) throw new Error('no answer')
    if (record.kind === 'command' && record.command === this.refused) throw new RecordRefused('disk full')
    this.received.push(record)
  }

  async close(): Promise<void> {}

  get said(): string[] {
    return this.received.map((record) =>
      record.kind === 'command' ? record.command : `${record.kind} ${record.session}`,
    )
  }
}

const running: Fed[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()))
  removeFolders()
})

const refusals: string[] = []
async function fed(
  sender: AccountingSender,
  options: Partial<AccountingSinkOptions> = {},
  feeds: FedOptions = {},
): Promise<Fed> {
  refusals.length = 0
  const sink = new AccountingSink({
    type: 'tacacs',
    address: 'netops',
    id: 'auth1',
    sender,
    onRefused: (record, reason) =>
      refusals.push(`${record.kind === 'command' ? record.command : record.kind}: ${reason}`),
    after: hurried,
    ...options,
  })
  const one = await feeding([sink], feeds)
  running.push(one)
  return one
}

const SESSION: EventFields = {
  session: 's1',
  user: 'alice@corp',
  client_ip: '192.0.2.7',
  protocol: 'SSH',
  account: 'root',
  domain: 'local',
  device: 'srv1',
  service: 'ssh',
}
const command = (one: Fed, object: string, session = 's1') =>
  one.record('command', { ...SESSION, session, object })

describe('accounting', () => {
  test('has a record for each session that begins and ends, and each command, with what is known of them', async () => {
    const sender = new MemorySender()
    const one = await fed(sender)
    await one.record('session.open', SESSION)
    await command(one, 'show version')
    await one.record('command', { ...SESSION, confidence: 'unread', reason: 'no echo' })
    await one.record('service.start')
    await one.record('session.close', {
      ...SESSION,
      result: 'success',
      duration: 61_000,
      bytes_in: 7,
      bytes_out: 9,
    })
    await until(() => sender.received.length === 3)
    const about = {
      session: 's1',
      user: 'alice@corp',
      source: '192.0.2.7',
      protocol: 'SSH',
      target: 'root@local@srv1:ssh',
      time: expect.any(Number),
    }
    expect(sender.received).toEqual([
      { ...about, kind: 'start' },
      { ...about, kind: 'command', command: 'show version', result: '' },
      { ...about, kind: 'stop', elapsed: 61_000, bytesIn: 7, bytesOut: 9, result: 'success', reason: '' },
    ])
    await until(() => one.feed.queued === 0)
  })

  test('loses nothing while the server is away, nor when the broker stops meanwhile', async () => {
    const sender = new MemorySender()
    const first = await fed(sender)
    await command(first, 'a')
    await until(() => sender.received.length === 1)
    await until(() => first.feed.position === first.repository.rows.at(-1)!.sequence)
    sender.isAway = true
    await command(first, 'b')
    await until(() => first.events('sink.down').length === 1)
    await first.close()
    const second = await fed(sender, {}, first)
    await command(second, 'c')
    sender.isAway = false
    await until(() => sender.received.length === 3)
    expect(sender.said).toEqual(['a', 'b', 'c'])
  })

  test("tells of the bastion's own start and end between what was before and after, but not of a takeover", async () => {
    const sender = new MemorySender()
    sender.kinds = ['start', 'stop', 'on', 'off']
    sender.isAway = true
    const one = await fed(sender)
    for (let nth = 0; nth < 20; nth++) await one.record('session.open', { ...SESSION, session: `a${nth}` })
    await one.record('service.stop')
    await one.record('service.start')
    for (let nth = 0; nth < 20; nth++) await one.record('session.open', { ...SESSION, session: `b${nth}` })
    await one.record('service.stop', { method: 'takeover' })
    await one.record('service.start', { method: 'takeover' })
    await one.record('session.close', SESSION)
    await until(() => one.events('sink.down').length === 1)
    sender.isAway = false
    await until(() => sender.received.length === 43)
    const said = sender.said
    expect(said.slice(20, 22)).toEqual(['off ', 'on '])
    expect(said.slice(0, 20).every((text) => text.startsWith('start a'))).toBe(true)
    expect(said.slice(22).every((text) => text.startsWith('start b') || text === 'stop s1')).toBe(true)
    expect(new Set(said).size).toBe(43)
  })

  test('does not count a server as back that accepts connections and confirms nothing', async () => {
    const sender = new MemorySender()
    const one = await fed(sender)
    sender.isMute = true
    await command(one, 'a')
    await until(() => sender.reached >= 4)
    expect(one.events('sink.down')).toHaveLength(1)
    expect(one.events('sink.up')).toHaveLength(0)
    sender.isMute = false
    await until(() => one.events('sink.up').length === 1)
    expect(sender.said).toEqual(['a'])
  })

  test('leaves a record out that the server refuses again and again, says so, and goes on', async () => {
    const sender = new MemorySender()
    sender.refused = 'b'
    const one = await fed(sender)
    await command(one, 'a')
    await command(one, 'b')
    await command(one, 'c')
    await until(() => sender.said.includes('c'))
    expect(sender.said.filter((command) => command !== 'a')).toEqual(['c'])
    expect(refusals).toEqual(['b: disk full'])
  })

  test('keeps the order within a session, and asks for several sessions at a time', async () => {
    const sender = new MemorySender()
    const one = await fed(sender)
    const numbers = Array.from({ length: 600 }, (_, i) => i)
    await Promise.all(numbers.map((i) => command(one, `${i}`, `s${i % 40}`)))
    await until(() => sender.received.length === 600)
    for (let session = 0; session < 40; session++) {
      const own = sender.received.filter((record) => record.session === `s${session}`)
      expect(own.map((record) => record.kind === 'command' && Number(record.command))).toEqual(
        numbers.filter((i) => i % 40 === session),
      )
    }
    expect(sender.most).toBeGreaterThan(1)
    expect(sender.most).toBeLessThanOrEqual(16)
  })

  test('tells the server of the sessions that concern it only', async () => {
    const sender = new MemorySender()
    const one = await fed(sender, { concerns: ({ user }) => user.endsWith('@corp') })
    await one.record('session.open', { ...SESSION, session: 's2', user: 'bob' })
    await one.record('session.open', SESSION)
    await until(() => sender.received.length === 1)
    await until(() => one.feed.queued === 0)
    expect(sender.said).toEqual(['start s1'])
  })

  test('reports sessions that run, but none that has ended or has just begun', async () => {
    const sender = new MemorySender()
    const interim = (session: string, elapsed: number): AccountingRecord => ({
      kind: 'interim',
      session,
      user: 'alice',
      source: '',
      protocol: 'SSH',
      target: '',
      time: 1,
      elapsed,
    })
    const one = await fed(sender, {
      interim: {
        intervalMs: 1000,
        running: async () => [interim('s1', 5000), interim('ended', 5000), interim('new', 10)],
      },
    })
    await one.record('session.close', { ...SESSION, session: 'ended' })
    await until(() => sender.said.filter((said) => said === 'interim s1').length >= 1)
    expect(sender.said[0]).toBe('stop ended')
    expect(sender.said[1]).toBe('interim s1')
    expect(sender.said).not.toContain('interim new')
  })
})
