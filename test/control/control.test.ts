/** The control socket of a data folder, between two ends in one process. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ControlClient, type ControlNews } from '../../src/control/client.ts'
import { type LinkedSession, MAX_LINE } from '../../src/control/messages.ts'
import { CONTROL_SOCKET, replacedSockets } from '../../src/control/place.ts'
import { type ControlHandler, ControlServer } from '../../src/control/server.ts'
import { until } from '../until.ts'

let folder: string
const servers: ControlServer[] = []
const clients: ControlClient[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-control-'))
})
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy()
  for (const server of servers.splice(0)) {
    server.drain()
    server.close()
  }
  rmSync(folder, { recursive: true, force: true })
})

const asked: unknown[] = []
const handler: ControlHandler = {
  status: () => ({ version: 1, schema: 18, pid: 42, state: 'serving', sessions: 3 }),
  drain: (request) => asked.push(request),
  takeOver: () => Promise.reject(new Error('it is stopping')),
  link: () => [],
  kill: async ({ session }) => session === 'one',
  suspend: async ({ reason }) => (reason === undefined ? 'not_suspended' : 'suspended'),
}

async function serve(dataDir = folder, changes: Partial<ControlHandler> = {}): Promise<ControlServer> {
  const server = await ControlServer.open(dataDir, { ...handler, ...changes })
  servers.push(server)
  return server
}

async function connect(path = join(folder, CONTROL_SOCKET)): Promise<ControlClient> {
  const client = await ControlClient.connect(path)
  if (!client) throw new Error('expected a broker')
  clients.push(client)
  return client
}

/** Sends these bytes, and waits until the server has closed the connection. Returns what it said. */
function say(bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = ''
    const socket: Socket = createConnection(join(folder, CONTROL_SOCKET))
    socket.on('data', (piece) => {
      heard += piece
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(heard))
    socket.write(bytes)
  })
}

test('answers requests, each with its own number', async () => {
  await serve()
  const client = await connect()
  const answers = await Promise.all([
    client.status(),
    client.ask({ type: 'kill', session: 'one', reason: 'enough', by: 'admin' }),
    client.ask({ type: 'kill', session: 'none', reason: 'enough', by: 'admin' }),
    client.ask({ type: 'drain', graceMs: 1 }),
  ])
  expect(answers).toMatchObject([
    { state: 'serving', sessions: 3, pid: 42 },
    { type: 'killed', wasRunning: true },
    { type: 'killed', wasRunning: false },
    { type: 'done' },
  ])
  expect(asked.at(-1)).toMatchObject({ type: 'drain', graceMs: 1 })
  await expect(client.ask({ type: 'takeOver', pid: 1 })).rejects.toThrow('it is stopping')
})

test('is the user’s alone', async () => {
  await serve()
  expect(statSync(join(folder, CONTROL_SOCKET)).mode & 0o777).toBe(0o600)
})

test.each<[string, string | Buffer]>([
  ['no JSON', 'status\n'],
  ['no request', '{"id":1,"type":"stop"}\n'],
  ['a field too many', '{"id":1,"type":"status","as":"root"}\n'],
  ['a grace beyond a day', '{"id":1,"type":"drain","graceMs":86400001}\n'],
  ['a grace below nothing', '{"id":1,"type":"drain","graceMs":-1}\n'],
  ['a line that is too long', `{"id":1,"type":"kill","reason":"${'x'.repeat(MAX_LINE)}"}\n`],
  ['a line without an end', Buffer.alloc(MAX_LINE + 1, 0x20)],
])('closes the connection of a client that sends %s', async (_, bytes) => {
  await serve()
  expect(await say(bytes)).toBe('')
  expect((await (await connect()).status()).pid).toBe(42)
})

test('a folder whose path is longer than a socket’s may be', async () => {
  const deep = join(folder, 'x'.repeat(100), 'y'.repeat(100))
  mkdirSync(deep, { recursive: true })
  await serve(deep)
  expect(readdirSync(deep)).toEqual([CONTROL_SOCKET])
  expect((await (await connect(join(deep, CONTROL_SOCKET))).status()).pid).toBe(42)
})

test('takes the place of a socket that a dead broker has left', async () => {
  writeFileSync(join(folder, CONTROL_SOCKET), '')
  expect(await ControlClient.connect(join(folder, CONTROL_SOCKET))).toBeUndefined()
  await serve()
  expect((await (await connect()).status()).pid).toBe(42)
})

test('a broker that was replaced is found, and its end does not remove the socket of the newer one', async () => {
  const old = await serve()
  old.makeRoom()
  await serve(folder, { status: () => ({ ...handler.status(), pid: 43 }) })
  const [path, ...more] = replacedSockets(folder)
  expect(more).toEqual([])
  expect((await (await connect(path)).status()).pid).toBe(42)
  old.drain()
  old.close()
  await until('the end of the old one', () => (replacedSockets(folder).length === 0 ? true : undefined))
  expect((await (await connect()).status()).pid).toBe(43)
})

test('a broker that is asked to leave learns that the asking one has gone', async () => {
  let isThere: (() => boolean) | undefined
  await serve(folder, {
    takeOver: (_request, there) => {
      isThere = there
      return new Promise(() => undefined)
    },
  })
  const client = await connect()
  client.ask({ type: 'takeOver', pid: 1 }).catch(() => undefined)
  await until('the request', () => isThere)
  expect(isThere!()).toBe(true)
  client.destroy()
  await until('the end of the asking one', () => (isThere!() ? undefined : true))
})

test('a linked client gets all sessions, and the end of each', async () => {
  const sessions: LinkedSession[] = Array.from({ length: 1_234 }, (_, i) => ({
    id: `${i}`.padStart(128, '0'),
    userId: 'u'.repeat(128),
    accountId: 'a'.repeat(128),
    begin: i,
    isRecorded: i % 2 === 0,
  }))
  const server = await serve(folder, { link: () => sessions })
  const client = await connect()
  const stranger = await connect()
  const news: ControlNews[] = []
  client.onNews = (one) => news.push(one)
  stranger.onNews = () => expect.unreachable()
  await client.ask({ type: 'link' })
  expect(news.flatMap((one) => (one.type === 'sessions' ? one.sessions : []))).toEqual(sessions)
  server.onSessionClosed('one')
  await stranger.status()
  await until('the end', () => (news.at(-1)?.type === 'closed' ? true : undefined))
  expect(news.at(-1)).toEqual({ type: 'closed', session: 'one' })
})

test('what was asked of a broker that ends is an error', async () => {
  const server = await serve(folder, { kill: () => new Promise(() => undefined) })
  const client = await connect()
  const killing = client.ask({ type: 'kill', session: 'one', reason: 'enough', by: 'admin' })
  await client.status()
  server.drain()
  server.close()
  await expect(killing).rejects.toThrow('the broker has closed the connection')
  await client.onClosed
  await expect(client.status()).rejects.toThrow('the broker has closed the connection')
})
