/** Clients that type into a terminal and do not take its picture: what they do is on record all the same, or is not done. */
import { existsSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  buildChannelRequest,
  buildClose,
  buildData,
  buildPtyRequest,
  buildShell,
  buildWindowAdjust,
} from '../../proxies/ssh/codec/build.ts'
import { dataOf, MSG } from '../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { fieldsOf, framesOf, streamOf } from '../e2e/recorded.ts'
import { startTerminalBastion, type TerminalBastion } from '../e2e/terminals.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { startFalseTerminal } from './false-terminal.ts'
import { type RawClient, signInRaw } from './raw.ts'
import { describeAttacks, OWN, openSession } from './setting.ts'

const NOTHING = Buffer.alloc(0)
const SIZE = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }
let marks = 0

interface TerminalOptions {
  window?: number
  columns?: number
  rows?: number
}

/** A shell in a terminal, which lets the target send so many bytes and no more. */
async function terminal(client: RawClient, { window = 0, ...size }: TerminalOptions = {}) {
  const id = await openSession(client, OWN, window)
  client.send(buildPtyRequest(id, true, { ...SIZE, ...size }), buildShell(id, true))
  await client.next(MSG.channelSuccess)
  await client.next(MSG.channelSuccess)
  return {
    id,
    type: (text: string) => client.send(buildData(id, text)),
    take: (bytes: number) => client.send(buildWindowAdjust(id, bytes)),
    /** What was shown so far. */
    shown: () =>
      Buffer.concat(
        client.received.filter(([type]) => type === MSG.channelData).map((one) => dataOf(one)),
      ).toString('latin1'),
  }
}

/** A file that a command makes, to see that it ran. */
function witness(): string {
  return join(tmpdir(), `sallyport-unseen-${process.pid}-${marks++}`)
}

describeAttacks('who does not take the picture', (setting) => {
  const made: string[] = []
  let sessions = 0
  const mark = () => {
    const path = witness()
    made.push(path)
    return path
  }
  const ran = (path: string) => until('the command', () => existsSync(path) || undefined)
  /** The frames of the session that has just ended. */
  const recorded = async () => {
    const rows = await setting.bastion.closedSessions(++sessions)
    return { row: rows.at(-1)!, frames: await framesOf(setting.bastion.broker, rows.at(-1)!.id) }
  }
  const outputOf = (frames: Parameters<typeof streamOf>[0]) => streamOf(frames, 'output').toString()

  beforeAll(async () => {
    await setting.bastion.broker.must('POST', '/connectionpolicies', {
      policy_name: 'watched',
      command_rules: ['kill forbidden', 'notify noticed'],
    })
    await setting.bastion.broker.must('PUT', '/devices/srv1/services/ssh', { connection_policy: 'watched' })
  })
  afterAll(() => {
    for (const path of made) rmSync(path, { force: true })
  })

  test('by a window of nothing: what they ran is on record, with what it said', async () => {
    const client = await setting.arrive()
    const { type } = await terminal(client)
    const path = mark()
    type(`echo se''en > ${path}; cat ${path}\r`)
    await ran(path)
    client.destroy()
    const { frames } = await recorded()
    expect(outputOf(frames)).toContain(`echo se''en > ${path}`)
    expect(outputOf(frames)).toMatch(/\rseen\r\n/)
    expect(fieldsOf(frames, 'command')[0]).toMatchObject({ line: `echo se''en > ${path}; cat ${path}` })
  })

  test('by a window of nothing: a rule that kills is asked, before the target has the line', async () => {
    const client = await setting.arrive()
    const { type } = await terminal(client)
    const path = mark()
    type(`echo forbidden > ${path}\r`)
    await client.untilClosed()
    const { row } = await recorded()
    expect(row).toMatchObject({ result: 'killed' })
    expect(existsSync(path)).toBe(false)
  })

  test('by closing the channel over the command: what it says is on record', async () => {
    const client = await setting.arrive()
    const { id, type } = await terminal(client)
    type("sleep 0.3; echo a''fter\r")
    client.send(buildClose(id))
    await client.next(MSG.channelClose)
    client.destroy()
    expect(outputOf((await recorded()).frames)).toMatch(/\rafter\r\n/)
  })

  test('of what they did not take gets it when they do, in order, with the end behind it', async () => {
    const client = await setting.arrive()
    const { type, take, id } = await terminal(client, { window: 10 })
    type("PS1=; for n in 1 2 3 4 5; do echo line'-'$n; done; exit 7\r")
    await until('the end of the shell', async () => {
      const [row] = await setting.bastion.broker.must<{ id: string }[]>('GET', '/sessions?status=current')
      const events = await setting.bastion.broker.must<Record<string, unknown>[]>(
        'GET',
        `/sessions/${row?.id}/events`,
      )
      return events.some(({ event }) => event === 'command') || undefined
    })
    let shown = ''
    let status: number | undefined
    take(1)
    for (let end = false; !end; ) {
      const message = await client.next(MSG.channelData, MSG.channelRequest, MSG.channelClose)
      if (message[0] === MSG.channelData) {
        expect(dataOf(message).length).toBeLessThanOrEqual(10)
        shown += Buffer.from(dataOf(message)).toString()
        take(7)
      } else if (message[0] === MSG.channelRequest) status = message.at(-1)
      else end = true
    }
    client.send(buildClose(id))
    client.destroy()
    expect(shown).toContain('line-1\r\nline-2\r\nline-3\r\nline-4\r\nline-5\r\n')
    expect(status).toBe(7)
    expect(outputOf((await recorded()).frames)).toContain(shown)
  })

  test('for three seconds types nothing any more, but interrupts; and goes on when they look again', async () => {
    const client = await setting.arrive()
    const { type, take, id } = await terminal(client)
    const [first, second, third] = [mark(), mark(), mark()]
    type(`touch ${first}; cat\r`)
    await ran(first)
    await new Promise((resolve) => setTimeout(resolve, 3_200))
    type(`touch ${second}\r`)
    // What is typed before an interrupt goes with it.
    type(`\x03touch ${third}\r`)
    const signal = new Writer().string('WINCH').finish()
    client.send(buildChannelRequest(id, 'signal', false, signal))
    await new Promise((resolve) => setTimeout(resolve, 700))
    expect(existsSync(third)).toBe(false)
    take(1_000_000)
    await ran(third)
    expect(existsSync(second)).toBe(false)
    client.destroy()
    expect(outputOf((await recorded()).frames)).toContain('^C')
  })

  test('and floods from behind a window of nothing: what is kept is bounded, and the target waits', async () => {
    const client = await setting.arrive()
    const { type } = await terminal(client)
    const path = mark()
    type(`head -c 20000000 /dev/zero | tr '\\0' x; touch ${path}\r`)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const [row] = await setting.bastion.broker.must<{ bytes_out?: number }[]>(
      'GET',
      '/sessions?status=current',
    )
    expect(row).toBeDefined()
    expect(existsSync(path)).toBe(false)
    client.destroy()
    const { row: ended } = await recorded()
    expect(ended.bytes_out).toBeGreaterThan(200_000)
  })

  describe('in sh, by Ctrl-S', () => {
    test('what they ran is an event, and on record', async () => {
      const client = await setting.arrive()
      const { type } = await terminal(client, { window: 1_000_000 })
      type("exec sh\rPS1='re''ady> '\r")
      await until('sh', () => client.received.some((one) => one.includes('ready> ')) || undefined)
      const path = mark()
      type('\x13')
      type(`echo se''en > ${path}; cat ${path}\r`)
      await ran(path)
      client.destroy()
      const { row, frames } = await recorded()
      expect(outputOf(frames)).toContain('\r\nseen\r\n')
      const events = await setting.bastion.broker.must<Record<string, unknown>[]>(
        'GET',
        `/sessions/${row.id}/events`,
      )
      const commands = events.filter(({ event }) => event === 'command')
      expect(commands.at(-1)).toMatchObject({ object: `echo se''en > ${path}; cat ${path}` })
    })
  })
})

describeWithPeers('who does not take the picture of a Telnet or rlogin target', ['ssh'], () => {
  let bastion: TerminalBastion
  beforeAll(async () => {
    bastion = await startTerminalBastion()
  })
  afterAll(() => bastion.stop())

  test('by a window of nothing: what they did is on record', async () => {
    const target = await startFalseTerminal(async (socket, heard) => {
      socket.write('sw1> ')
      await heard('reload\r')
      socket.write('reload\r\nreloading\r\nsw1> ')
    })
    try {
      const { user, port, password } = await bastion.add({
        device: 'sw1',
        protocol: 'TELNET',
        port: target.port,
        by: 'interactive_logins',
      })
      const client = await signInRaw({ port, user, password: password! })
      const { type } = await terminal(client)
      type('reload\r')
      await until('the command', () => target.received().includes('reload\r') || undefined)
      client.destroy()
      const frames = await framesOf(bastion.broker, (await bastion.closed()).id)
      expect(streamOf(frames, 'output').toString()).toContain('sw1> reload\r\nreloading\r\nsw1> ')
    } finally {
      await target.stop()
    }
  })
})
