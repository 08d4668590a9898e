/**
 * Clients that type into a terminal and do not read its output: their actions are recorded nevertheless, or
 * do not happen.
 */
import { existsSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  buildChannelRequest,
  buildClose,
  buildData,
  buildExtendedData,
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
import { describeAttacks, noSession, OWN, openSession } from './setting.ts'

const NOTHING = Buffer.alloc(0)
const SIZE = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }
let marks = 0

interface TerminalOptions {
  window?: number
  columns?: number
  rows?: number
}

/** Opens a shell in a terminal, with a window of this many bytes for the target. */
async function terminal(client: RawClient, { window = 0, ...size }: TerminalOptions = {}) {
  const id = await openSession(client, OWN, window)
  client.send(buildPtyRequest(id, true, { ...SIZE, ...size }), buildShell(id, true))
  await client.next(MSG.channelSuccess)
  await client.next(MSG.channelSuccess)
  return {
    id,
    type: (text: string) => client.send(buildData(id, text)),
    take: (bytes: number) => client.send(buildWindowAdjust(id, bytes)),
    /** Returns the output so far. */
    shown: () =>
      Buffer.concat(
        client.received.filter(([type]) => type === MSG.channelData).map((one) => dataOf(one)),
      ).toString('latin1'),
  }
}

/** Returns a file that a command creates, as proof that it ran. */
function witness(): string {
  return join(tmpdir(), `sallyport-unseen-${process.pid}-${marks++}`)
}

describeAttacks('who does not take the picture', (setting) => {
  const made: string[] = []
  const mark = () => {
    const path = witness()
    made.push(path)
    return path
  }
  const ran = (path: string) => until('the command', () => existsSync(path) || undefined)
  /** Returns the frames of the session that has just ended. */
  const recorded = async () => {
    await noSession(setting.bastion)
    const rows = await setting.bastion.closedSessions(1)
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
    const [ready, path] = [mark(), mark()]
    // input before the shell's first prompt may cause no event
    type(`touch ${ready}\r`)
    await ran(ready)
    type(`echo se''en > ${path}; cat ${path}\r`)
    await ran(path)
    client.destroy()
    const { frames } = await recorded()
    expect(outputOf(frames)).toContain(`echo se''en > ${path}`)
    expect(outputOf(frames)).toMatch(/\rseen\r\n/)
    const lines = fieldsOf(frames, 'command').map(({ line }) => line)
    expect(lines).toContain(`echo se''en > ${path}; cat ${path}`)
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

  test('by breaking the protocol over the command: what it says is on record', async () => {
    const client = await setting.arrive()
    const { id, type } = await terminal(client)
    type("sleep 0.3; echo a''fter\r")
    client.send(buildExtendedData(id, 'no client says this'))
    await client.next(MSG.channelClose)
    client.destroy()
    const { row, frames } = await recorded()
    expect(outputOf(frames)).toMatch(/\rafter\r\n/)
    expect(row).toMatchObject({
      result: 'failure',
      reason: expect.stringMatching(/the client broke the SSH protocol/),
    })
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
    let allowed = 10 + 1
    take(1)
    for (let end = false; !end; ) {
      const message = await client.next(MSG.channelData, MSG.channelRequest, MSG.channelClose)
      if (message[0] === MSG.channelData) {
        shown += Buffer.from(dataOf(message)).toString('latin1')
        expect(shown.length).toBeLessThanOrEqual(allowed)
        allowed += 7
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
    // Input before an interrupt is discarded with it.
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

  test('by reading nothing of their connection: what they type waits', async () => {
    const client = await setting.arrive()
    const { type } = await terminal(client, { window: 0x7fffffff })
    type('(yes noise | head -c 400000000) &\r')
    await until('noise', () => client.received.some((one) => one.includes('noise\r\nnoise')) || undefined)
    client.socket.pause()
    // The buffers in between fill up first.
    let held: string | undefined
    for (let tries = 0; tries < 30 && held === undefined; tries++) {
      const path = mark()
      type(`touch ${path}\r`)
      await until('the command', () => existsSync(path) || undefined, 2_000).catch(() => {
        held = path
      })
    }
    expect(held).toBeDefined()
    client.socket.resume()
    await ran(held!)
    type('\x03kill %1\r')
    client.destroy()
    await recorded()
  })

  /** Starts sh, which has no line editor: the terminal itself echoes. */
  async function plainShell() {
    const client = await setting.arrive()
    const { type } = await terminal(client, { window: 1_000_000 })
    type("exec sh\rPS1='re''ady> '\r")
    await until('sh', () => client.received.some((one) => one.includes('ready> ')) || undefined)
    const prompts = () =>
      client.received.reduce((count, one) => count + one.toString('latin1').split('ready> ').length - 1, 0)
    /** Types a line, and waits for the next prompt. */
    const say = async (line: string) => {
      const before = prompts()
      type(`${line}\r`)
      await until('the prompt', () => prompts() > before || undefined)
    }
    return { client, type, say }
  }
  const commandsOf = async (id: string) => {
    const events = await setting.bastion.broker.must<Record<string, unknown>[]>(
      'GET',
      `/sessions/${id}/events`,
    )
    return events.filter(({ event }) => event === 'command')
  }

  describe('by Ctrl-S', () => {
    test('what they ran is an event, and on record', async () => {
      const { client, type } = await plainShell()
      const path = mark()
      type('\x13')
      type(`echo se''en > ${path}; cat ${path}\r`)
      await ran(path)
      client.destroy()
      const { row, frames } = await recorded()
      expect(outputOf(frames)).toContain('\r\nseen\r\n')
      expect((await commandsOf(row.id)).at(-1)).toMatchObject({
        object: `echo se''en > ${path}; cat ${path}`,
      })
    })

    test('a Return that is never echoed is an event without its text, while they are there', async () => {
      const { client, type } = await plainShell()
      const path = mark()
      type(`\x13touch ${path}\r`)
      await ran(path)
      const unread = await until('the event', async () =>
        (await setting.bastion.events('command')).find(
          ({ confidence, reason }) => confidence === 'unread' && reason === 'it was typed without echo',
        ),
      )
      expect(unread).not.toHaveProperty('object')
      client.destroy()
      await recorded()
    })

    test('a rule that kills is asked of the keys, before the target has the line', async () => {
      const { type } = await plainShell()
      const path = mark()
      type('\x13')
      type(`echo forbiddXX\x7f\x7fen > ${path}\r`)
      const { row } = await recorded()
      expect(row).toMatchObject({ result: 'killed' })
      expect(existsSync(path)).toBe(false)
      const last = (await commandsOf(row.id)).at(-1)
      expect(last).toMatchObject({ confidence: 'unread', rule: 'kill forbidden', result: 'denied' })
      expect(last).not.toHaveProperty('object')
    })
  })

  describe('by turning the echo off:', () => {
    test('what they run is an event without its text, or with the rule that it met', async () => {
      const { client, say } = await plainShell()
      await say('stty -echo')
      const path = mark()
      await say(`echo se''cret; touch ${path}`)
      await say(`: noticed; touch ${mark()}`)
      expect(existsSync(path)).toBe(true)
      client.destroy()
      const { row } = await recorded()
      const unread = (await commandsOf(row.id)).filter(({ confidence }) => confidence === 'unread')
      expect(unread).toMatchObject([{}, { rule: 'notify noticed' }])
      expect(JSON.stringify(unread)).not.toContain(path)
      expect(setting.bastion.broker.log()).not.toContain(path)
    })

    test('a rule that kills is asked of the keys', async () => {
      const { type, say } = await plainShell()
      await say('stty -echo')
      const path = mark()
      type(`echo forbidden > ${path}\r`)
      expect((await recorded()).row).toMatchObject({ result: 'killed' })
      expect(existsSync(path)).toBe(false)
    })
  })

  describe('by keys that a line editor would take otherwise:', () => {
    const killed = async (path: string) => {
      expect((await recorded()).row).toMatchObject({ result: 'killed' })
      expect(existsSync(path)).toBe(false)
    }

    test.each([
      ['^Z, over which it keeps the line', '', '\x1a'],
      ['ESC ^, which is no answer of a terminal', '\x1b^', ''],
      ['ESC ], which begins one', '\x1b]', ''],
    ])('%s', async (_, before, after) => {
      const client = await setting.arrive()
      const { type, shown } = await terminal(client, { window: 1_000_000 })
      type("PS1='re''ady$ '\r")
      await until('the prompt', () => shown().includes('ready$ ') || undefined)
      const path = mark()
      type(`${before}echo forbidden > ${path}`)
      await until('the line', () => shown().includes(path) || undefined)
      type(after)
      type('\r')
      await killed(path)
    })

    test('the end of the input instead of Return', async () => {
      const { type } = await plainShell()
      const path = mark()
      type(`echo forbidden > ${path}\x04\x04`)
      await killed(path)
    })

    test('a paste that nobody has asked for in earnest', async () => {
      const { type, say } = await plainShell()
      await say("printf '\\033[?2004h'")
      const path = mark()
      type(`\x1b[200~\recho forbidden > ${path}\r`)
      await killed(path)
    })

    test('what takes a line away in it, with the echo off', async () => {
      const { type, say } = await plainShell()
      await say('stty -echo')
      const path = mark()
      type(`echo forbidden > ${path} #\x01\x0b\r`)
      await killed(path)
    })
  })

  describe.each([
    [0, 0],
    [1, 4],
    [65_535, 1],
  ])('in a terminal of %d × %d', (columns, rows) => {
    test('a rule that kills is asked', async () => {
      const client = await setting.arrive()
      const { type } = await terminal(client, { window: 1_000_000, columns, rows })
      const [ready, path] = [mark(), mark()]
      type(`touch ${ready}\r`)
      await ran(ready)
      type(`touch ${path}\r`)
      await ran(path)
      const other = mark()
      type(`echo forbidden > ${other}\r`)
      const { row } = await recorded()
      expect(row).toMatchObject({ result: 'killed' })
      expect(existsSync(other)).toBe(false)
      expect((await commandsOf(row.id)).length).toBeGreaterThan(1)
    })

    test('also of a line out of the history', async () => {
      const client = await setting.arrive()
      const { type } = await terminal(client, { window: 1_000_000, columns, rows })
      const [first, other] = [mark(), mark()]
      type(`history -s "echo for""bidden > ${other}"\r`)
      type(`touch ${first}\r`)
      await ran(first)
      type('\x1b[A\x1b[A')
      type('\r')
      const { row } = await recorded()
      expect(row).toMatchObject({ result: 'killed' })
      expect(existsSync(other)).toBe(false)
      if (columns !== 0) expect(row.reason).toMatch(/a command line cannot be read/)
    })
  })
})

describeWithPeers('who does not take the picture of a Telnet or rlogin target', ['ssh'], () => {
  let bastion: TerminalBastion
  beforeAll(async () => {
    bastion = await startTerminalBastion()
  })
  afterAll(() => bastion.stop())

  test.each(['TELNET', 'RLOGIN'] as const)(
    'by a window of nothing, of a %s target: what they did is on record',
    async (protocol) => {
      const target = await startFalseTerminal(async (socket, heard) => {
        if (protocol === 'RLOGIN') {
          await heard('/38400\0')
          socket.write('\0')
        }
        socket.write('sw1> ')
        await heard('reload\r')
        socket.write('reload\r\nreloading\r\nsw1> ')
      })
      try {
        const { user, port, password } = await bastion.add({
          device: `sw-${protocol.toLowerCase()}`,
          protocol,
          port: target.port,
          by: 'interactive_logins',
          policy: {
            command_rules: ['kill forbidden'],
            ...(protocol === 'RLOGIN' && { privileged_port: false }),
          },
        })
        const open = async () => {
          const client = await signInRaw({ port, user, password: password! })
          return { client, ...(await terminal(client)) }
        }
        const { client, type } = await open()
        type('reload\r')
        await until('the command', () => target.received().includes('reload\r') || undefined)
        client.destroy()
        const frames = await framesOf(bastion.broker, (await bastion.closed()).id)
        expect(streamOf(frames, 'output').toString()).toContain('sw1> reload\r\nreloading\r\nsw1> ')
        const other = await open()
        other.type('forbidden\r')
        await other.client.untilClosed()
        expect(await bastion.closed()).toMatchObject({ result: 'killed' })
        expect(target.received().includes('forbidden\r')).toBe(false)
      } finally {
        await target.stop()
      }
    },
  )
})
