/** A broker's hold on its data folder, and its links to replaced brokers, with control sockets in one process. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Hold } from '../../src/broker/hold.ts'
import { Predecessors } from '../../src/broker/predecessors.ts'
import { CONTROL_VERSION, type ControlStatus, type LinkedSession } from '../../src/control/messages.ts'
import { type ControlHandler, ControlServer } from '../../src/control/server.ts'
import type { ElsewhereSession } from '../../src/gate/elsewhere.ts'
import { holdDataFolder } from '../../src/host/data-folder.ts'
import { SCHEMA_VERSION } from '../../src/store/migrate.ts'
import { until } from '../until.ts'

let folder: string
const endings: (() => void)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-hold-'))
})
afterEach(() => {
  for (const end of endings.splice(0).toReversed()) end()
  rmSync(folder, { recursive: true, force: true })
})

/** A broker of which only the control socket is there; it holds the folder until it is replaced. */
interface Stub {
  server: ControlServer
  release: () => void
  sessions: LinkedSession[]
  killed: string[]
  /** Links that are refused before one is not. */
  refusals: number
}

async function stubBroker(status: Partial<ControlStatus> = {}): Promise<Stub> {
  const release = holdDataFolder(folder)
  const stub = { release, sessions: [] as LinkedSession[], killed: [] as string[], refusals: 0 }
  const handler: ControlHandler = {
    status: () => ({
      version: CONTROL_VERSION,
      schema: SCHEMA_VERSION,
      pid: 42,
      state: 'serving',
      sessions: stub.sessions.length,
      ...status,
    }),
    drain: () => undefined,
    takeOver: async () => {
      server.makeRoom()
      release()
    },
    link: () => {
      if (stub.refusals-- > 0) throw new Error('not now')
      return stub.sessions
    },
    kill: async ({ session, by }) => {
      stub.killed.push(`${session} by ${by}`)
      return true
    },
    suspend: async ({ session, by, reason }) => {
      stub.killed.push(`${session} ${reason === undefined ? 'resumed' : `suspended for ${reason}`} by ${by}`)
      return reason === undefined ? 'released' : 'suspended'
    },
  }
  const server = await ControlServer.open(folder, handler)
  endings.push(() => {
    server.drain()
    server.close()
  })
  return Object.assign(stub, { server })
}

const session = (id: string): LinkedSession => ({
  id,
  userId: 'u',
  accountId: 'a',
  begin: 1,
  isRecorded: true,
})

async function linked() {
  const elsewhere = new Map<string, ElsewhereSession>()
  const happened: string[] = []
  const predecessors = new Predecessors({
    dataDir: folder,
    elsewhere,
    onFound: ({ id }) => happened.push(`${id} found`),
    onClosed: ({ id }) => happened.push(`${id} closed`),
    onGone: () => happened.push('gone'),
    onLost: ({ id }) => happened.push(`${id} lost`),
    onError: (error) => happened.push(error.message),
  })
  endings.push(() => predecessors.close())
  await predecessors.open()
  return { predecessors, elsewhere, happened }
}

test('nobody holds the folder: there is nothing to replace', async () => {
  const hold = await Hold.open(folder, {})
  expect(await hold.take()).toBeUndefined()
  expect(() => holdDataFolder(folder)).toThrow('is in use')
  hold.release()
  hold.release()
  holdDataFolder(folder)()
})

test('without the wish to replace it a broker stays, and the error names the way', async () => {
  await stubBroker()
  await expect(Hold.open(folder)).rejects.toThrow('or replace it by sallyport serve --takeover')
})

test('a broker is replaced when the newer one is ready, not before', async () => {
  await stubBroker()
  const hold = await Hold.open(folder, {})
  endings.push(() => hold.release())
  expect(readdirSync(folder)).toContain('control.sock')
  expect(await hold.take()).toBe(42)
  expect(readdirSync(folder)).not.toContain('control.sock')
  expect(readFileSync(join(folder, 'sallyport.pid'), 'utf8')).toBe(`${process.pid}\n`)
})

test.each<[string, Partial<ControlStatus>, string]>([
  [
    'with another schema',
    { schema: SCHEMA_VERSION - 1 },
    'because it changes the database: stop that broker first',
  ],
  ['with other messages', { version: CONTROL_VERSION + 1 }, 'because they do not speak with one another'],
  ['that is stopping', { state: 'draining' }, 'the broker (process 42) is stopping'],
  ['that is starting', { state: 'starting' }, 'the broker (process 42) is starting'],
])('a broker %s is left alone', async (_, status, reason) => {
  await stubBroker(status)
  await expect(Hold.open(folder, {})).rejects.toThrow(reason)
  expect(readdirSync(folder)).toContain('control.sock')
})

test('a holder without a control socket is not replaced', async () => {
  endings.push(holdDataFolder(folder))
  await expect(Hold.open(folder, {})).rejects.toThrow('a process that has no control socket')
})

test('no broker of another version begins beside the sessions of a replaced one', async () => {
  const { server, release } = await stubBroker({ schema: SCHEMA_VERSION - 1 })
  server.makeRoom()
  release()
  await expect(Hold.open(folder)).rejects.toThrow('(process 42) still has sessions here')
  // The folder is free again.
  holdDataFolder(folder)()
})

test('sessions of a replaced broker are known, ended on request, and forgotten when they end', async () => {
  const { server, sessions, killed } = await stubBroker()
  sessions.push(session('one'), session('two'))
  server.makeRoom()
  const { predecessors, elsewhere, happened } = await linked()
  expect(predecessors.figures).toEqual([{ place: 2, state: 'replaced', sessions: 2 }])
  expect([...elsewhere.values()]).toMatchObject([
    { id: 'one', userId: 'u', accountId: 'a' },
    { id: 'two', userId: 'u', accountId: 'a' },
  ])
  expect(await elsewhere.get('two')?.kill('enough', 'admin')).toBe(true)
  expect(killed).toEqual(['two by admin'])
  server.onSessionClosed('two')
  server.onSessionClosed('none')
  await until('the end', () => (elsewhere.size === 1 ? true : undefined))
  expect(happened).toEqual(['one found', 'two found', 'two closed'])
  expect(predecessors.figures).toEqual([{ place: 2, state: 'replaced', sessions: 1 }])
})

test('input that is held in a replaced broker is known, from the link on', async () => {
  const { server, sessions } = await stubBroker()
  const first = { reason: 'look', by: 'admin', since: 5 }
  sessions.push({ ...session('one'), hold: first }, session('two'))
  server.makeRoom()
  const { elsewhere } = await linked()
  const holds = () => ['one', 'two'].map((id) => elsewhere.get(id)?.hold)
  expect(holds()).toEqual([first, undefined])
  server.onHeld('one')
  server.onHeld('none', first)
  server.onHeld('two', { reason: 'nobody watches', since: 6 })
  await until('the holds', () => (elsewhere.get('two')?.hold ? true : undefined))
  expect(holds()).toEqual([undefined, { reason: 'nobody watches', since: 6 }])
})

test('sessions of a broker that dies are lost, and its socket is removed', async () => {
  const { server, sessions } = await stubBroker()
  sessions.push(session('one'), session('two'))
  server.makeRoom()
  const { predecessors, elsewhere, happened } = await linked()
  server.onSessionClosed('one')
  server.drain()
  server.close()
  await until('the loss', () => (happened.includes('two lost') ? true : undefined))
  expect(happened.slice(2)).toEqual(['one closed', 'gone', 'two lost'])
  expect(predecessors.figures).toEqual([])
  expect(elsewhere.size).toBe(0)
  expect(readdirSync(folder).filter((name) => name.startsWith('control'))).toEqual([])
})

test('a link that breaks is made again while its broker lives', async () => {
  const { server, sessions } = await stubBroker()
  sessions.push(session('one'), session('two'))
  server.makeRoom()
  const { elsewhere, happened } = await linked()
  // The end of one falls into the moment without a link.
  sessions.shift()
  server.close()
  await until('the new link', () => (happened.includes('one closed') ? true : undefined))
  expect([...elsewhere.keys()]).toEqual(['two'])
  expect(await elsewhere.get('two')?.kill('enough', 'admin')).toBe(true)
  expect(happened).toEqual(['one found', 'two found', 'one closed'])
})

test('a link that cannot be made again at once is tried until it can', async () => {
  const stub = await stubBroker()
  stub.sessions.push(session('one'), session('two'))
  stub.server.makeRoom()
  const { predecessors, elsewhere, happened } = await linked()
  stub.refusals = 3
  stub.sessions.shift()
  stub.server.close()
  await until('the break', () => happened[2])
  expect(predecessors.figures).toEqual([{ place: 2, state: 'unlinked', sessions: 2 }])
  await until('the new link', () => (happened.includes('one closed') ? true : undefined))
  expect(stub.refusals).toBe(-1)
  expect([...elsewhere.keys()]).toEqual(['two'])
  expect(predecessors.figures).toEqual([{ place: 2, state: 'replaced', sessions: 1 }])
  stub.server.onSessionClosed('two')
  await until('the end', () => (elsewhere.size === 0 ? true : undefined))
  // The fault is reported once.
  expect(happened.slice(2)).toEqual([expect.stringContaining('not now'), 'one closed', 'two closed'])
})
