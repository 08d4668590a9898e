import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer as createTlsServer } from 'node:tls'
import { generate } from 'selfsigned'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { severityOf } from '../../src/audit/events/catalogue.ts'
import type { EventFields } from '../../src/audit/events/fields.ts'
import { sentenceOf } from '../../src/audit/sentence.ts'
import { type After, systemAfter } from '../../src/audit/sink.ts'
import { SyslogSink } from '../../src/audit/sinks/syslog.ts'
import type { SyslogTarget } from '../../src/config/config.ts'
import { openUnacknowledged } from '../../src/sockets/outgoing.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { type Rsyslog, type SyslogMessage, startRsyslog } from '../peers/rsyslog.ts'
import { EVENT_CODES } from './codes.ts'
import { type Fed, feeding, hurried, removeFolders, until } from './feeding.ts'
import { readCef, readEcs, readLeef } from './readers.ts'

const origin = { hostname: 'bastion.example.com', version: '1.2.3', processId: 42, enterprise: 32473 }
const strings = (fields: EventFields) =>
  Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, String(value)]))
const unacknowledged = await openUnacknowledged()

let running: Fed[] = []
function sinkOf(
  port: number,
  target: Partial<SyslogTarget> & Pick<SyslogTarget, 'transport'>,
  after = hurried,
): SyslogSink {
  return new SyslogSink({
    target: { host: '127.0.0.1', port, format: 'rfc5424', ...target },
    origin,
    after,
    unacknowledged,
  })
}
async function fedTo(...[port, target, after = hurried]: Parameters<typeof sinkOf>): Promise<Fed> {
  const one = await feeding([sinkOf(port, target, after)], { after })
  running.push(one)
  return one
}
beforeEach(() => {
  running = []
})
afterEach(async () => {
  await Promise.all(running.map((one) => one.close()))
  removeFolders()
})

/** Returns the rows of messages in the order of their arrival. */
const sequences = (messages: SyslogMessage[]) =>
  messages.map((message) => Number(message['rfc5424-sd']?.['sallyport@32473']?.sequence))
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)
const last = ({ repository }: Fed) => repository.rows.at(-1)!.sequence
/** Checks that each row came once, in order, except for a tail that is sent again. */
function expectWhole(received: number[], end: number): void {
  let highest = 0
  for (const one of received) {
    expect(one).toBeLessThanOrEqual(highest + 1)
    highest = Math.max(highest, one)
  }
  expect(highest).toBe(end)
}

const certificate = (name: string) =>
  generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
    ],
  })

describeWithPeers('a real rsyslogd', ['rsyslogd', 'rsyslog-gnutls'], () => {
  let rsyslog: Rsyslog
  beforeEach(async () => {
    rsyslog = await startRsyslog()
  })
  afterEach(() => rsyslog.stop())

  test.each(['udp', 'tcp'] as const)('takes every event of the catalogue over %s', async (transport) => {
    const one = await fedTo(rsyslog.port, { transport })
    for (const code of EVENT_CODES) {
      await one.record(code, { user: 'ops1', client_ip: '192.0.2.7', bytes_in: 2 ** 40 })
    }
    const messages = await rsyslog.waitFor(EVENT_CODES.length + 1)
    const told = messages.filter((message) => message['rfc5424-sd']?.['sallyport@32473']?.user === 'ops1')
    expect(told.map(({ msgid }) => msgid)).toEqual(EVENT_CODES)
    for (const code of EVENT_CODES) {
      const event = one.events(code).find(({ fields }) => fields.user === 'ops1')!
      expect(told.find(({ msgid }) => msgid === code)).toMatchObject({
        app: 'sallyport',
        hostname: 'bastion.example.com',
        procid: '42',
        facility: 'authpriv',
        severity: severityOf(event),
        via: transport,
        'rfc5424-sd': {
          'sallyport@32473': {
            sequence: String(event.sequence),
            user: 'ops1',
            client_ip: '192.0.2.7',
            bytes_in: '1099511627776',
          },
        },
      })
    }
    expect(one.events('sink.down').map(({ fields }) => fields.user)).toEqual(['ops1'])
  })

  const hostile = [
    'root"] [forged@1 user="admin"] x',
    'a\\',
    'a\\"',
    ']',
    '"',
    '|',
    'x suser=admin',
    'x\tusrName=admin',
    '","user":{"name":"admin"},"x":"',
    "' OR 1=1",
    'x\n<86>1 2026-11-20T00:00:00Z bastion sallyport 1 auth.success [sallyport@32473 user="admin"] admin signed in',
    '20 <86>1 - - sallyport - auth.success - x',
    '\u0000\u0001\u001b]0;title\u0007\u009b31m\u007f',
    '\u202etxt.exe\u2028\ufeff',
    'Élodie 日本 🔑',
    '\ud800',
    '%s%n $(reboot) `reboot` #{x} ;x',
    'CEF:0|x|y|z|1|2|3|a=b',
    'x'.repeat(64 * 1024),
    ']'.repeat(5000),
  ]
  async function recordHostile(one: Fed): Promise<SyslogMessage[]> {
    for (const value of hostile) {
      const reason = value.length < 1000 ? { reason: value } : {}
      await one.record('auth.failure', { user: value, method: 'password', ...reason })
    }
    await rsyslog.waitFor(hostile.length + 1)
    await sleep(100)
    // As many messages as events: no event began another message.
    expect(rsyslog.messages()).toHaveLength(hostile.length + 1)
    return rsyslog.messages().filter(({ msgid }) => msgid === 'auth.failure')
  }

  // attack: log injection
  test.each(['udp', 'tcp'] as const)(
    'reads hostile values over %s as the values they are',
    async (transport) => {
      const one = await fedTo(rsyslog.port, { transport })
      const messages = await recordHostile(one)
      for (const event of one.events('auth.failure')) {
        const found = messages.find(
          (message) => message['rfc5424-sd']?.['sallyport@32473']?.sequence === String(event.sequence),
        )
        expect(found, String(event.fields.user).slice(0, 40)).toMatchObject({
          msgid: 'auth.failure',
          severity: 'warning',
        })
        expect(found?.['rfc5424-sd']).toEqual({
          'sallyport@32473': { sequence: String(event.sequence), ...strings(event.fields) },
        })
        expect(found?.text.replace(/^ ?\ufeff?/, '')).toBe(sentenceOf(event))
      }
    },
  )

  // attack: log injection
  test.each([
    ['cef', (text: string) => readCef(text)?.extension, ['suser', 'reason', 'externalId']],
    ['leef', (text: string) => readLeef(text)?.attributes, ['usrName', 'reason', 'sequence']],
    ['ecs', readEcs, ['user.name', 'event.reason', 'event.sequence']],
  ] as const)('passes hostile values in %s on as the values they are', async (format, read, names) => {
    const one = await fedTo(rsyslog.port, { transport: 'tcp', format })
    const messages = await recordHostile(one)
    const told = messages.map(({ text }) => {
      const values: Record<string, unknown> = read(text.replace(/^ /, '')) ?? {}
      return names.map((name) => values[name] && String(values[name]))
    })
    expect(told).toEqual(
      one
        .events('auth.failure')
        .map(({ fields: { user, reason }, sequence }) => [user, reason, String(sequence)]),
    )
  })

  test('has nothing against config/siem/rsyslog.conf', async () => {
    const file = new URL('../../config/siem/rsyslog.conf', import.meta.url).pathname
    const { code, stderr } = await run(findProgram('rsyslogd'), ['-N1', '-f', file])
    expect(stderr).not.toMatch(/error|warning/i)
    expect(code).toBe(0)
  })

  test('over TLS hears from a client with a certificate only', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-syslog-'))
    const write = (name: string, text: string) => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    const own = await certificate('receiver')
    const client = await certificate('bastion')
    await rsyslog.stop()
    rsyslog = await startRsyslog(0, {
      ca: write('ca.pem', own.cert + client.cert),
      certificate: write('own.pem', own.cert),
      key: write('own.key', own.private),
      client: 'bastion',
    })
    const shown = { certificate: write('client.pem', client.cert), key: write('client.key', client.private) }
    const target = { transport: 'tls', ca: join(folder, 'own.pem') } as const
    const anonymous = await fedTo(rsyslog.tlsPort, target)
    await anonymous.record('auth.success', { user: 'unseen' })
    await until(() => anonymous.events('sink.down').length === 1)
    const one = await fedTo(rsyslog.tlsPort, { ...target, client: shown, format: 'ecs' })
    await one.record('auth.success', { user: 'seen' })
    const messages = await rsyslog.waitFor(2)
    await until(() => one.feed.position === last(one))
    expect(messages.map(({ via, msgid }) => [via, msgid])).toEqual([
      ['tls', 'sink.begin'],
      ['tls', 'auth.success'],
    ])
    expect(anonymous.feed.position).toBe(0)
    rmSync(folder, { recursive: true })
  })

  test('gets over TCP what happened while it was away, and that is told once', async () => {
    // Less hurried: a receiver that closes slowly on a busy machine does not count as back for as long.
    const brisk: After = (ms, action) => systemAfter(ms / 10, action)
    const one = await fedTo(rsyslog.port, { transport: 'tcp' }, brisk)
    await one.record('service.start')
    await rsyslog.waitFor(2)
    // Rows that are not settled would be sent again.
    await until(() => one.feed.position === last(one))
    await rsyslog.stop()
    await until(() => one.events('sink.down').length > 0)
    for (let i = 0; i < 500; i++) void one.record('command', { object: `command ${i}` })
    await one.audit.flush()
    expect(one.feed.queued).toBeGreaterThanOrEqual(500)
    rsyslog = await startRsyslog(rsyslog.port)
    await until(() => one.events('sink.up').length === 1)
    const messages = await rsyslog.waitFor(502)
    const commands = messages.filter(({ msgid }) => msgid === 'command')
    expect(commands.map((message) => message['rfc5424-sd']?.['sallyport@32473']?.object)).toEqual(
      Array.from({ length: 500 }, (_, i) => `command ${i}`),
    )
    expect(sequences(messages)).toEqual(upTo(last(one)).slice(-messages.length))
    // A message is in the receiver's file before the feed knows it.
    await until(() => one.feed.queued === 0)
    expect(one.events('sink.down')).toHaveLength(1)
    expect(one.events('sink.down')[0]?.fields.object).toBe(`tcp://127.0.0.1:${rsyslog.port}`)
  })

  test('has each event with the time that the clock had, which jumps by a day and back', async () => {
    const clock = { ahead: 0 }
    const now = () => Date.now() + clock.ahead
    const one = await feeding([sinkOf(rsyslog.port, { transport: 'tcp' })], { now })
    running.push(one)
    for (const days of [0, 1, -1, 0]) {
      clock.ahead = days * 24 * 60 * 60_000
      for (let i = 0; i < 20; i++) await one.record('command', { object: `${days}` })
    }
    const messages = await rsyslog.waitFor(last(one))
    expect(sequences(messages)).toEqual(upTo(last(one)))
    expect(messages.map(({ reported }) => Date.parse(reported))).toEqual(
      one.repository.rows.map(({ time }) => time),
    )
  })

  test('has all of it, and nothing twice, over a broker that stops in order and starts again', async () => {
    const one = await fedTo(rsyslog.port, { transport: 'tcp' }, systemAfter)
    for (let i = 0; i < 300; i++) void one.record('command', { object: 'x'.repeat(500) })
    await one.close()
    expect(one.feed).toBeUndefined()
    const rest = { repository: one.repository, folder: one.folder, after: systemAfter }
    const two = await feeding([sinkOf(rsyslog.port, { transport: 'tcp' }, systemAfter)], rest)
    running.push(two)
    await two.record('service.start')
    const messages = await rsyslog.waitFor(last(two))
    expect(sequences(messages)).toEqual(upTo(last(two)))
  })

  test('has all of it over a hard stop of the broker, twice only what was sent last', async () => {
    const one = await fedTo(rsyslog.port, { transport: 'tcp' })
    for (let i = 0; i < 300; i++) await one.record('command', { object: String(i) })
    await rsyslog.waitFor(301)
    const { repository, folder } = one
    const two = await feeding([sinkOf(rsyslog.port, { transport: 'tcp' })], { repository, folder })
    running.push(two)
    await two.record('service.start')
    await until(() => sequences(rsyslog.messages()).includes(last(two)))
    expectWhole(sequences(rsyslog.messages()), last(two))
  })
})

describe('a receiver over UDP', () => {
  test('that is not there is told once, costs nothing, and later gets all of it', async () => {
    const receiver = createSocket('udp4').bind(0, '127.0.0.1')
    await once(receiver, 'listening')
    const { port } = receiver.address()
    receiver.close()
    const one = await fedTo(port, { transport: 'udp' })
    for (let i = 0; i < 20; i++) {
      await one.record('command')
      await sleep(5)
    }
    expect(one.events('sink.down').map(({ fields }) => fields.reason)).toEqual([
      expect.stringMatching(/ECONNREFUSED/),
    ])
    const back = createSocket('udp4').bind(port, '127.0.0.1')
    await once(back, 'listening')
    const received: number[] = []
    back.on('message', (message) => received.push(Number(/ sequence="(\d+)"/.exec(message.toString())?.[1])))
    await until(() => one.events('sink.up').length === 1)
    await until(() => received.includes(last(one)))
    expect(received).toEqual(upTo(last(one)))
    back.close()
    await sleep(50)
    await one.record('command')
    await until(() => one.events('sink.down').length === 2)
    expect(one.feed.position).toBeLessThan(last(one))
  })

  test('whose name does not resolve costs nothing', async () => {
    const one = await fedTo(514, { transport: 'udp', host: 'no-such-host.invalid' })
    await one.record('command')
    await until(() => one.events('sink.down').length === 1)
    expect(one.feed.lost).toBe(0)
    expect(one.feed.queued).toBeGreaterThan(1)
  })
})

describe('a receiver over TCP', () => {
  let server: Server
  let sockets: Socket[]
  beforeEach(() => {
    sockets = []
    server = createServer((socket) => sockets.push(socket.on('error', () => {})))
  })
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  async function listen(): Promise<number> {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  test('gets messages with their length in bytes before them', async () => {
    const port = await listen()
    let text = ''
    server.on('connection', (socket) =>
      socket.on('data', (data) => {
        text += data.toString()
      }),
    )
    await (await fedTo(port, { transport: 'tcp' })).record('auth.success', { user: 'Élodie' })
    await until(() => text.includes('signed in'))
    const [, length = '', message = ''] = /(\d+) (<85>1 \S+ \S+ \S+ \S+ auth\.success .*)$/s.exec(text) ?? []
    expect(message).toContain('Élodie')
    expect(Buffer.byteLength(message)).toBe(Number(length))
  })

  test('that reads nothing costs no memory: what it does not take stays in the log', async () => {
    const port = await listen()
    let taken = 0
    server.on('connection', (socket) => {
      socket.pause()
      taken++
    })
    const one = await fedTo(port, { transport: 'tcp' })
    for (let i = 0; i < 5000; i++) {
      void one.record('command', { object: 'x'.repeat(2000), reason: 'y'.repeat(2000) })
    }
    await one.audit.flush()
    await until(() => taken === 1)
    await sleep(200)
    expect(one.feed.queued).toBeGreaterThan(1000)
    expect(one.feed.lost).toBe(0)
    expect(one.events('sink.down')).toHaveLength(0)
  })

  test('that takes connections and closes them makes one event, not a flood', async () => {
    const port = await listen()
    let connections = 0
    server.on('connection', (socket) => {
      connections++
      socket.end()
    })
    const one = await fedTo(port, { transport: 'tcp' })
    await until(() => connections > 5)
    expect(one.events('sink.down')).toHaveLength(1)
  })

  test('gets again what was under way when it broke off', async () => {
    const port = await listen()
    let second = ''
    server.on('connection', (socket) => {
      if (sockets.length === 1) socket.once('data', () => socket.resetAndDestroy())
      else
        socket.on('data', (data) => {
          second += data.toString()
        })
    })
    const one = await fedTo(port, { transport: 'tcp' })
    await one.record('service.start')
    await until(() => second.includes(' service.start '))
    expect(second).toContain(' sink.begin ')
    expect(one.events('sink.down')).toHaveLength(1)
  })

  test('that dies with what its system had taken for it gets that again', async () => {
    const port = await listen()
    server.on('connection', (socket) => {
      // It never reads; its system acknowledges all the same.
      if (sockets.length === 1) socket.pause()
    })
    const one = await fedTo(port, { transport: 'tcp' })
    await one.record('service.start')
    await until(() => sockets.length === 1 && one.feed.queued === 0)
    expect(one.feed.position).toBe(0)
    sockets[0]!.resetAndDestroy()
    let text = ''
    await until(() => sockets.length === 2)
    sockets[1]!.on('data', (data) => {
      text += data.toString()
    })
    await until(() => text.includes(' service.start '))
  })

  test('that vanishes without a word: what was not acknowledged is not taken for received', async () => {
    const port = await listen()
    let onTheWay = 0
    const sink = new SyslogSink({
      target: { host: '127.0.0.1', port, format: 'rfc5424', transport: 'tcp' },
      origin,
      after: hurried,
      unacknowledged: () => onTheWay,
    })
    const one = await feeding([sink])
    running.push(one)
    await until(() => one.feed.position === last(one))
    onTheWay = 1
    await one.record('service.start')
    await sleep(300)
    expect(one.feed.position).toBe(last(one) - 1)
    onTheWay = 0
    await until(() => one.feed.position === last(one))
  })

  test('that is far away settles what it has, while more is always on its way', async () => {
    const port = await listen()
    server.on('connection', (socket) => socket.resume())
    const sink = new SyslogSink({
      target: { host: '127.0.0.1', port, format: 'rfc5424', transport: 'tcp' },
      origin,
      after: hurried,
      unacknowledged: () => 1,
    })
    const one = await feeding([sink])
    running.push(one)
    for (let n = 0; n < 10; n++) {
      await one.record('auth.failure', { user: 'ops1' })
      await until(() => one.feed.position >= last(one) - 1)
    }
    expect(one.feed.position).toBe(last(one) - 1)
    expect(one.events('sink.down')).toEqual([])
  })

  test('whose acknowledgements take their time gets more meanwhile, and no more than a mebibyte', async () => {
    const port = await listen()
    let received = 0
    server.on('connection', (socket) =>
      socket.on('data', ({ length }) => {
        received += length
      }),
    )
    const sink = new SyslogSink({
      target: { host: '127.0.0.1', port, format: 'rfc5424', transport: 'tcp' },
      origin,
      after: hurried,
      unacknowledged: () => 2 ** 30,
    })
    const one = await feeding([sink])
    running.push(one)
    await Promise.all(
      Array.from({ length: 4000 }, (_, n) =>
        one.record('command', { object: `${n} ${'x'.repeat(200)}`, user: 'ops1' }),
      ),
    )
    let before = -1
    await until(() => {
      const isStill = received > 0 && received === before
      before = received
      return isStill
    })
    await sleep(50)
    const most = 2 ** 20
    expect(received).toBeGreaterThan(most)
    expect(received).toBeLessThan(most + 200 * 1200)
    expect(one.feed.position).toBe(0)
  })
})

describe('a receiver over TLS', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-syslog-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('is believed only with a certificate that the given authority signed', async () => {
    const own = await certificate('receiver')
    const other = await certificate('other')
    let received = ''
    const server = createTlsServer({ cert: own.cert, key: own.private }, (socket) => {
      socket.on('data', (data) => {
        received += data
      })
      socket.on('error', () => {})
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    writeFileSync(join(folder, 'own.pem'), own.cert)
    writeFileSync(join(folder, 'other.pem'), other.cert)

    const trusting = await fedTo(port, { transport: 'tls', ca: join(folder, 'own.pem') })
    const wary = await fedTo(port, { transport: 'tls', ca: join(folder, 'other.pem') })
    const plain = await fedTo(port, { transport: 'tls' })
    await trusting.record('auth.success', { user: 'seen' })
    await wary.record('auth.success', { user: 'unseen' })
    await plain.record('auth.success', { user: 'unseen' })
    const isDown = (one: Fed) => one.events('sink.down').length === 1
    await until(() => received.includes('user="seen"') && isDown(wary) && isDown(plain))
    await until(() => trusting.feed.position === last(trusting))
    expect(received).not.toContain('unseen')
    expect(wary.feed.position).toBe(0)
    expect(plain.feed.position).toBe(0)
    expect(trusting.feed.queued).toBe(0)
    server.close()
  })
})
