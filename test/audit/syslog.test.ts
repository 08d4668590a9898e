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
import { severityOf } from '../../src/audit/catalogue.ts'
import type { StoredEvent } from '../../src/audit/chain.ts'
import { cleanFields } from '../../src/audit/clean.ts'
import type { EventFields } from '../../src/audit/fields.ts'
import { sentenceOf } from '../../src/audit/sentence.ts'
import { type After, systemAfter } from '../../src/audit/sink.ts'
import { SyslogSink } from '../../src/audit/sinks/syslog.ts'
import type { SyslogTarget } from '../../src/config/config.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Rsyslog, startRsyslog } from '../peers/rsyslog.ts'
import { EVENT_CODES } from './codes.ts'

const origin = { hostname: 'bastion.example.com', processId: 42, enterprise: 32473 }
/** A second of the sink's back-off is 20 ms here. */
const hurried: After = (ms, action) => systemAfter(ms / 50, action)

let sinks: SyslogSink[] = []
let down: string[] = []
function sinkTo(port: number, target: Partial<SyslogTarget> & Pick<SyslogTarget, 'transport'>): SyslogSink {
  const sink = new SyslogSink({
    target: { host: '127.0.0.1', port, format: 'rfc5424', ...target },
    origin,
    onDown: ({ address }, reason) => down.push(`${address} ${reason}`),
    after: hurried,
  })
  sinks.push(sink)
  return sink
}
beforeEach(() => {
  sinks = []
  down = []
})
afterEach(() => Promise.all(sinks.map((sink) => sink.close())))

let sequence = 0
const event = (code: StoredEvent['code'], fields: EventFields = {}): StoredEvent => ({
  sequence: ++sequence,
  time: 1_795_000_000_000 + sequence,
  code,
  fields: cleanFields(fields),
})
const strings = (fields: EventFields) =>
  Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, String(value)]))
async function until(condition: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 10_000; !condition(); await sleep(5)) {
    if (Date.now() > deadline) throw new Error('the condition did not come true')
  }
}

describeWithPeers('a real rsyslogd', ['rsyslogd'], () => {
  let rsyslog: Rsyslog
  beforeEach(async () => {
    rsyslog = await startRsyslog()
  })
  afterEach(() => rsyslog.stop())

  test.each(['udp', 'tcp'] as const)('takes every event of the catalogue over %s', async (transport) => {
    const sink = sinkTo(rsyslog.port, { transport })
    const events = EVENT_CODES.map((code) =>
      event(code, { user: 'ops1', client_ip: '192.0.2.7', bytes_in: 2 ** 40 }),
    )
    for (const one of events) sink.send(one)
    const messages = await rsyslog.waitFor(events.length)
    expect(messages.map(({ msgid }) => msgid).sort()).toEqual([...EVENT_CODES].sort())
    for (const one of events) {
      expect(messages.find(({ msgid }) => msgid === one.code)).toMatchObject({
        app: 'sallyport',
        hostname: 'bastion.example.com',
        procid: '42',
        facility: 'authpriv',
        severity: severityOf(one),
        via: transport,
        'rfc5424-sd': {
          'sallyport@32473': { user: 'ops1', client_ip: '192.0.2.7', bytes_in: '1099511627776' },
        },
      })
    }
    expect(down).toEqual([])
  })

  // attack: log injection
  test.each(['udp', 'tcp'] as const)(
    'reads hostile values over %s as the values they are',
    async (transport) => {
      const sink = sinkTo(rsyslog.port, { transport })
      const hostile = [
        'root"] [forged@1 user="admin"] x',
        'a\\',
        'a\\"',
        ']',
        '"',
        '|',
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
      const events = hostile.map((value) =>
        event('auth.failure', {
          user: value,
          method: 'password',
          ...(value.length < 1000 ? { reason: value } : {}),
        }),
      )
      for (const one of events) sink.send(one)
      const messages = await rsyslog.waitFor(events.length)
      await sleep(100)
      // as many messages as events: nothing that was sent began another one
      expect(rsyslog.messages()).toHaveLength(events.length)
      for (const one of events) {
        const found = messages.find(
          (message) => message['rfc5424-sd']?.['sallyport@32473']?.user === one.fields.user,
        )
        expect(found, String(one.fields.user).slice(0, 40)).toMatchObject({
          msgid: 'auth.failure',
          severity: 'warning',
        })
        expect(found?.['rfc5424-sd']).toEqual({ 'sallyport@32473': strings(one.fields) })
        expect(found?.text.replace(/^ ?\ufeff?/, '')).toBe(sentenceOf(one))
      }
    },
  )

  test('gets over TCP what was sent while it was away, and its absence is told once', async () => {
    const sink = sinkTo(rsyslog.port, { transport: 'tcp' })
    sink.send(event('service.start'))
    await rsyslog.waitFor(1)
    await rsyslog.stop()
    await until(() => down.length > 0)
    for (let i = 0; i < 500; i++) sink.send(event('command', { object: `command ${i}` }))
    await sleep(200)
    expect(sink.queued).toBe(500)
    rsyslog = await startRsyslog(rsyslog.port)
    const messages = await rsyslog.waitFor(500)
    expect(messages.map((message) => message['rfc5424-sd']?.['sallyport@32473']?.object)).toEqual(
      Array.from({ length: 500 }, (_, i) => `command ${i}`),
    )
    expect(sink.queued).toBe(0)
    expect(sink.lost).toBe(0)
    expect(down).toEqual([expect.stringContaining(`tcp://127.0.0.1:${rsyslog.port} `)])
  })

  test('gets what is queued when the sink is closed', async () => {
    const sink = sinkTo(rsyslog.port, { transport: 'tcp' })
    sink.send(event('service.start'))
    await rsyslog.waitFor(1)
    for (let i = 0; i < 3000; i++) sink.send(event('command', { object: 'x'.repeat(500) }))
    await sink.close()
    await rsyslog.waitFor(3001)
    expect(sink.lost).toBe(0)
  })
})

describe('a receiver over UDP', () => {
  test('that is not there is told once and costs messages, and later gets them', async () => {
    const receiver = createSocket('udp4').bind(0, '127.0.0.1')
    await once(receiver, 'listening')
    const { port } = receiver.address()
    receiver.close()
    const sink = sinkTo(port, { transport: 'udp' })
    for (let i = 0; i < 20; i++) {
      sink.send(event('command'))
      await sleep(5)
    }
    expect(down).toEqual([expect.stringMatching(/ECONNREFUSED/)])
    expect(sink.queued).toBe(0)
    const back = createSocket('udp4').bind(port, '127.0.0.1')
    await once(back, 'listening')
    const received: string[] = []
    back.on('message', (message) => received.push(message.toString()))
    for (let i = 0; i < 10; i++) {
      sink.send(event('service.stop'))
      await sleep(20)
    }
    await until(() => received.some((message) => message.includes(' service.stop ')))
    await sleep(150)
    back.close()
    await sleep(20)
    for (let i = 0; i < 5; i++) {
      sink.send(event('command'))
      await sleep(5)
    }
    expect(down).toHaveLength(2)
  })

  test('whose name does not resolve costs messages and nothing else', async () => {
    const sink = sinkTo(514, { transport: 'udp', host: 'no-such-host.invalid' })
    sink.send(event('command'))
    await until(() => down.length === 1)
    expect(sink.lost).toBe(1)
    expect(sink.queued).toBe(0)
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
    sinkTo(port, { transport: 'tcp' }).send(event('auth.success', { user: 'Élodie' }))
    await until(() => sockets.length === 1)
    const [data] = (await once(sockets[0]!, 'data')) as [Buffer]
    const [, length = '', message = ''] = /^(\d+) (.*)$/s.exec(data.toString()) ?? []
    expect(message).toMatch(/^<85>1 .*Élodie/)
    expect(Buffer.byteLength(message)).toBe(Number(length))
  })

  test('that reads nothing costs bounded memory, and what is too much is counted', async () => {
    const port = await listen()
    server.on('connection', (socket) => socket.pause())
    const sink = sinkTo(port, { transport: 'tcp' })
    const long = event('command', { object: 'x'.repeat(2000), reason: 'y'.repeat(2000) })
    for (let i = 0; i < 10_000; i++) sink.send(long)
    expect(sink.lost).toBeGreaterThan(1000)
    expect(sink.queued + sink.lost).toBeLessThanOrEqual(10_000)
    expect(sink.queued).toBeLessThan(5000)
  })

  test('that takes connections and closes them makes one event, not a flood', async () => {
    const port = await listen()
    let connections = 0
    server.on('connection', (socket) => {
      connections++
      socket.end()
    })
    sinkTo(port, { transport: 'tcp' })
    await until(() => connections > 5)
    expect(down).toHaveLength(1)
  })

  test('gets again the message that was under way when it broke off', async () => {
    const port = await freePort()
    const sink = sinkTo(port, { transport: 'tcp' })
    sink.send(event('service.start'))
    await until(() => down.length === 1)
    expect(down[0]).toMatch(/ECONNREFUSED/)
    server.listen(port, '127.0.0.1')
    await until(() => sockets.length === 1)
    const [data] = (await once(sockets[0]!, 'data')) as [Buffer]
    expect(data.toString()).toContain(' service.start ')
  })
})

describe('a receiver over TLS', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-syslog-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const certificate = (name: string) =>
    generate([{ name: 'commonName', value: name }], {
      keyType: 'ec',
      extensions: [
        { name: 'basicConstraints', cA: true },
        { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
      ],
    })

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

    const trusting = sinkTo(port, { transport: 'tls', ca: join(folder, 'own.pem') })
    const wary = sinkTo(port, { transport: 'tls', ca: join(folder, 'other.pem') })
    const plain = sinkTo(port, { transport: 'tls' })
    trusting.send(event('auth.success', { user: 'seen' }))
    wary.send(event('auth.success', { user: 'unseen' }))
    plain.send(event('auth.success', { user: 'unseen' }))
    await until(() => received.includes('user="seen"') && down.length === 2)
    await sleep(100)
    expect(received).not.toContain('unseen')
    expect(wary.queued).toBe(1)
    expect(plain.queued).toBe(1)
    expect(trusting.queued).toBe(0)
    server.close()
  })
})
