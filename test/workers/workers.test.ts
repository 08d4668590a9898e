/** All session workers of a broker: connections among them, and replacements for those that die. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { FrontName } from '../../src/contract/front-settings.ts'
import type { Bound } from '../../src/sockets/accept.ts'
import type { WorkerEnd } from '../../src/workers/process.ts'
import { LOOP_LENGTH, Workers, type WorkersOptions } from '../../src/workers/workers.ts'
import { until } from '../until.ts'
import type { Mode } from './fake-worker.ts'
import { Client, commonOptions, doors, fakeCommand } from './fake-workers.ts'
import { type GateWorld, gateWorld } from './world.ts'

let log: string[]
let lost: { end: WorkerEnd; early: number }[]
let workers: Workers | undefined
let clients: Client[]
let bounds: Bound[]
let world: GateWorld | undefined

beforeEach(() => {
  log = []
  lost = []
  clients = []
  bounds = []
})
afterEach(async () => {
  for (const bound of bounds) bound.close()
  for (const client of clients) client.end()
  await workers?.drain(0, 'the test is over')
  workers = undefined
  await world?.remove()
  world = undefined
})

async function start(count: number, mode: Mode, more: Partial<WorkersOptions> = {}): Promise<Workers> {
  workers = await Workers.start({
    ...(await commonOptions(log)),
    command: fakeCommand(mode),
    count,
    onLost: (end, early) => lost.push({ end, early }),
    ...more,
  })
  return workers
}

/** Returns a function that connects a client to that front. */
async function front(name: FrontName, to: Workers): Promise<() => Client> {
  const bound = await doors((handle, source) => to.serve({ front: name, handle, source }))
  bounds.push(bound)
  return () => {
    const client = new Client(bound)
    clients.push(client)
    return client
  }
}

async function greeted(client: Client): Promise<number> {
  return (await client.greeting()).pid
}

test('a connection goes to the worker that has fewest', async () => {
  const all = await start(2, 'honest')
  const connect = await front('ssh', all)
  const pids: number[] = []
  for (let i = 0; i < 4; i++) pids.push(await greeted(connect()))
  expect(new Set(pids)).toEqual(new Set(all.pids))
  for (const pid of all.pids) expect(pids.filter((one) => one === pid)).toHaveLength(2)
})

test('all VNC connections go to one worker, where guests meet, and to another when it has died', async () => {
  const all = await start(2, 'honest')
  const connect = await front('vnc', all)
  const pids = [await greeted(connect()), await greeted(connect()), await greeted(connect())]
  expect(new Set(pids).size).toBe(1)
  process.kill(pids[0]!, 'SIGKILL')
  await until('the loss', () => lost[0])
  const others = [await greeted(connect()), await greeted(connect())]
  expect(new Set(others).size).toBe(1)
  expect(others[0]).not.toBe(pids[0])
})

test('the longest delay of each since the last look, by its place', async () => {
  const all = await start(2, 'honest', { pingMs: 30 })
  const delays: number[] = [0, 0]
  await until('pongs of both', () => {
    for (const [place, delay] of all.takeDelays().entries()) delays[place] = Math.max(delays[place]!, delay)
    return delays.every((delay) => delay > 0) || undefined
  })
  expect(delays).toEqual([12.5, 12.5])
  all.takeDelays()
  expect(all.takeDelays()).toEqual([0, 0])
})

test('one that dies is replaced; its connections are closed, those of the other go on', async () => {
  world = await gateWorld()
  const all = await start(2, 'opens', { gate: world.gate })
  const connect = await front('ssh', all)
  const [first, second] = [connect(), connect()]
  const [dying, living] = [await first.greeting(), await second.greeting()]
  const busy = { isUp: true, sessions: 1, connections: 1, losses: 0 }
  expect(all.figures).toMatchObject([busy, busy])
  process.kill(dying.pid, 'SIGKILL')
  await first.closed()
  await until('the loss', () => lost[0])
  expect(lost).toMatchObject([{ end: { pid: dying.pid, sessions: 1 }, early: 1 }])
  const gone = { isUp: false, sessions: 0, connections: 0, residentBytes: Number.NaN, losses: 1 }
  expect(all.figures).toContainEqual(gone)
  await until('the end of its session', async () =>
    (await world?.store.sessions.find(dying.more!))?.result === 'lost' ? true : undefined,
  )
  expect(world.gate.isRunning(living.more)).toBe(true)
  await second.echo('still here')
  await until('a replacement', () => (all.pids.length === 2 ? true : undefined), 20_000)
  expect(all.pids).not.toContain(dying.pid)
  expect(all.figures.map(({ isUp, losses }) => [isUp, losses]).sort()).toEqual([
    [true, 0],
    [true, 1],
  ])
  // The new one has fewest.
  expect(all.pids).toContain(await greeted(connect()))
})

test('connections wait while no worker is there, and are served by the next', async () => {
  const all = await start(1, 'honest')
  const connect = await front('ssh', all)
  const [pid] = all.pids
  process.kill(pid!, 'SIGKILL')
  await until('the loss', () => lost[0])
  const waiting = [connect(), connect(), connect()]
  for (const client of waiting) expect(await greeted(client)).not.toBe(pid)
  await waiting[0]!.echo('hello')
})

test('workers that die as soon as they have begun are replaced ever later, and counted', async () => {
  const begun: number[] = []
  const all = await start(1, 'dies at once', { onBegun: () => begun.push(performance.now()) })
  await until('three losses', () => (lost.length >= LOOP_LENGTH ? true : undefined), 25_000)
  expect(lost.slice(0, 3).map(({ early }) => early)).toEqual([1, 2, 3])
  expect(lost[0]!.end.reason).toBe('the session worker ended by itself (exit code 4)')
  // 500 and 1000 ms at least.
  expect(begun[1]! - begun[0]!).toBeGreaterThan(490)
  expect(begun[2]! - begun[1]!).toBeGreaterThan(990)
  await all.drain(0, 'the test is over')
})

test('a start fails with the reason if one of them cannot begin, and none is left', async () => {
  await expect(start(2, 'dies at start')).rejects.toThrow('the session worker ended by itself (exit code 3)')
  expect(lost).toEqual([])
})

test('a drain ends all of them, and closes what comes or waits', async () => {
  const all = await start(2, 'honest')
  const connect = await front('ssh', all)
  const before = connect()
  await before.greeting()
  await all.drain(0, 'the bastion is stopping')
  await before.closed()
  await connect().closed()
  expect(all.pids).toEqual([])
  expect(lost).toEqual([])
})
