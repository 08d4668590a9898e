/** Findings of `sallyport check` about receivers of events and clocks. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clock } from '../../src/commands/clock-check.ts'
import { notified, receivers } from '../../src/commands/receivers-check.ts'
import { parseConfig } from '../../src/config/load.ts'
import { Secret } from '../../src/model/secret.ts'
import { MailSender } from '../../src/notifications/mail.ts'
import { WebhookSender } from '../../src/notifications/webhook.ts'
import { freePort } from '../peers/process.ts'

const parse = (text: string) =>
  parseConfig(text, '/etc/sallyport/sallyport.yaml', { env: {}, hostname: 'box' })
const got: Buffer[] = []
const datagrams: Buffer[] = []
const sockets = new Set<Socket>()
const tcp = createServer((socket) => {
  sockets.add(socket)
  socket.on('error', () => undefined)
  socket.on('data', (bytes) => got.push(bytes))
})
const hostile = createServer((socket) => socket.resetAndDestroy())
const mute = createServer((socket) => {
  sockets.add(socket)
  socket.on('error', () => undefined)
})
/** Begins a record of TLS 1.2 of 16 KiB, and says an octet of it now and then. */
const dripping = createServer((socket) => {
  sockets.add(socket)
  socket.on('error', () => undefined)
  socket.write(Buffer.from([22, 3, 3, 0x40, 0]))
  const drip = setInterval(() => socket.write('2'), 20)
  socket.once('close', () => clearInterval(drip))
})
const udp = createSocket('udp4', (bytes) => datagrams.push(bytes))
const portOf = ({ port }: AddressInfo) => port

beforeAll(async () => {
  for (const server of [tcp, hostile, mute, dripping]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  udp.bind(0, '127.0.0.1')
  await once(udp, 'listening')
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of [tcp, hostile, mute, dripping]) server.close()
  udp.close()
})

test('receivers that are there are told from those that are not, and no event is sent', async () => {
  const closed = await freePort()
  const syslog = [
    { port: portOf(tcp.address() as AddressInfo), transport: 'tcp' },
    { port: closed, transport: 'tcp' },
    { port: portOf(hostile.address() as AddressInfo), transport: 'tls' },
    { port: portOf(udp.address()), transport: 'udp' },
  ].map((one) => ({ host: '127.0.0.1', ...one }))
  const traps = [{ host: '127.0.0.1', port: closed, version: '2c', community: 'public' }]
  const found = await receivers(parse(JSON.stringify({ syslog, snmp: { traps } })))
  const said = found.map(({ level, subject, text }) => `${level} ${subject} ${text}`)
  expect(said).toEqual([
    expect.stringMatching(/^ok syslog tcp:\/\/127\.0\.0\.1:\d+ accepts connections$/),
    expect.stringMatching(/^error syslog tcp:.*ECONNREFUSED.*look at the receiver/),
    expect.stringMatching(/^error syslog tls:.*(ECONNRESET|closed|disconnected).*client_certificate/),
    expect.stringMatching(/^ok syslog udp:.*UDP acknowledges nothing/),
    expect.stringMatching(/^error traps udp:.*ECONNREFUSED: start the receiver/),
  ])
  expect(got).toEqual([])
  expect(datagrams.every(({ length }) => length === 0)).toBe(true)
})

test('receivers that accept and say nothing, or a little now and then, are left after a while', async () => {
  for (const server of [mute, dripping]) {
    const port = portOf(server.address() as AddressInfo)
    const syslog = [{ host: '127.0.0.1', port, transport: 'tls' }]
    const webhook = new WebhookSender({
      ...{ options: { url: `https://127.0.0.1:${port}/` }, secret: Secret.of('x'), now: Date.now },
      ...{ maker: { hostname: 'box', version: '' }, isBarred: () => false },
    })
    const mail = new MailSender({
      options: { host: '127.0.0.1', port, security: 'tls', from: 'a@b', to: ['c@d'] },
      ...{ secret: undefined, hostname: 'box', isBarred: () => false },
    })
    const found = await Promise.all([
      receivers(parse(JSON.stringify({ syslog })), 300),
      notified([{ notification: { type: 'WEBHOOK', notificationName: 'soc' }, sender: webhook }], 300),
      notified([{ notification: { type: 'MAIL', notificationName: 'duty' }, sender: mail }], 300),
    ])
    expect(found.flat().map(({ level, subject, text }) => `${level} ${subject} ${text}`)).toEqual([
      expect.stringMatching(/^error syslog tls:\/\/.*: no answer within 0\.3 s: look at the receiver/),
      expect.stringMatching(/^error webhook soc: no answer within 0\.3 s: look at the receiver/),
      expect.stringMatching(/^error mail duty: no answer within 0\.3 s: look at the receiver/),
    ])
  }
})

test('the clock is looked at without a change of it', async () => {
  const found = await clock(parse(''))
  expect(found[0]).toMatchObject({ level: 'ok', subject: 'clock' })
  expect(found.slice(1).every(({ level }) => level === 'ok' || level === 'warning')).toBe(true)
})
