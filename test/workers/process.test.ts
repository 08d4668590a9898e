/** One session worker as the broker sees it: every way to break its rules, to hang or to die, by real processes. */
import { existsSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { OpenAnswer } from '../../src/contract/gate.ts'
import type { Bound } from '../../src/sockets/accept.ts'
import { SessionWorker, type WorkerEnd } from '../../src/workers/process.ts'
import type { SeatGate } from '../../src/workers/seat.ts'
import { until } from '../until.ts'
import type { Mode } from './fake-worker.ts'
import { Client, type Common, commonOptions, doors, fakeCommand, signInGate } from './fake-workers.ts'
import { type GateWorld, gateWorld } from './world.ts'

let log: string[]
let ends: WorkerEnd[]
let workers: SessionWorker[]
let clients: Client[]
let bounds: Bound[]
let world: GateWorld | undefined

beforeEach(() => {
  log = []
  ends = []
  workers = []
  clients = []
  bounds = []
})
afterEach(async () => {
  for (const bound of bounds) bound.close()
  for (const client of clients) client.end()
  for (const worker of workers) worker.destroy('the test is over')
  await until('the end of all workers', () => (ends.length >= workers.length ? true : undefined))
  await world?.remove()
  world = undefined
})

async function start(mode: Mode, more: Partial<Common> = {}): Promise<SessionWorker> {
  const options = { ...(await commonOptions(log)), ...more }
  const worker = await SessionWorker.start({
    ...options,
    command: fakeCommand(mode),
    onEnded: (end) => ends.push(end),
  })
  workers.push(worker)
  return worker
}

/** Connects a client to the worker. */
async function client(worker: SessionWorker): Promise<Client> {
  const bound = await doors((handle, source) => {
    if (!worker.give('ssh', handle.fd, source)) throw new Error('the worker has ended')
    handle.close()
  })
  bounds.push(bound)
  const connected = new Client(bound)
  clients.push(connected)
  return connected
}

const ended = () => until('the end of the worker', () => ends[0], 25_000)
/** Whether a process of that number is there. */
const isThere = (pid: number) => existsSync(`/proc/${pid}`)

test('serves connections that it was given, and reports when they are closed', async () => {
  const worker = await start('honest')
  const one = await client(worker)
  expect((await one.greeting()).pid).toBe(worker.pid)
  await one.echo('hello')
  expect(worker.connections).toBe(1)
  one.end()
  await until('no connection', () => (worker.connections === 0 ? true : undefined))
})

test('drains: the worker says when it has, and is ended', async () => {
  const worker = await start('honest')
  await worker.drain(0, 'the bastion is stopping')
  expect(ends).toMatchObject([{ pid: worker.pid, sessions: 0 }])
  expect(isThere(worker.pid)).toBe(false)
})

describe('does not begin', () => {
  test.each<[Mode, string | RegExp]>([
    ['dies at start', 'ended by itself (exit code 3)'],
    ['never begins', 'did not begin in time'],
    ['of another version', 'it is of another version'],
    ['a report of its bounds that is none', 'expected a message of a session worker'],
  ])('%s: the start fails with the reason', async (mode, reason) => {
    const startMs = mode === 'never begins' ? 1_000 : 30_000
    await expect(start(mode, { startMs })).rejects.toThrow(reason)
    expect(ends).toEqual([])
  })

  test('a program that is not there', async () => {
    const command = { ...fakeCommand('honest'), file: '/nonexistent/node' }
    const starting = SessionWorker.start({ ...(await commonOptions(log)), command, onEnded: () => undefined })
    await expect(starting).rejects.toThrow('could not be started')
  })

  test('no ping is missed while it begins', async () => {
    // Ten pings without an answer would end it.
    await expect(start('never begins', { startMs: 1_000, pingMs: 10 })).rejects.toThrow(
      'did not begin in time',
    )
  })
})

describe('breaks the rules', () => {
  test.each<[Mode, string]>([
    ['bytes that are no message', 'is too long'],
    ['a message that is too long', 'is too long'],
    ['a message of no type', 'expected a message of a session worker'],
    ['an unknown method', 'expected a message of a session worker'],
    ['a field too many', 'leave'],
  ])('%s: it is ended', async (mode, reason) => {
    const worker = await start(mode)
    const one = await client(worker)
    const end = await ended()
    expect(end).toMatchObject({ pid: worker.pid, reason: expect.stringContaining(reason) })
    expect(end.reason).toMatch(/^the session worker was ended, because it broke the rules of its messages: /)
    expect(isThere(worker.pid)).toBe(false)
    await one.closed()
  })

  test('begins twice: it is ended', async () => {
    await start('begins twice').catch(() => undefined)
    expect((await ended()).reason).toContain('it began twice')
  })

  test('names the session of another worker: it is ended, and the session runs on', async () => {
    world = await gateWorld()
    const { gate } = world
    const honest = await start('opens', { gate })
    const owner = await client(honest)
    const { more: session } = await owner.greeting()
    expect(gate.isRunning(session)).toBe(true)
    const false_ = await start('the session of another', { gate })
    const attacker = await client(false_)
    await attacker.greeting()
    attacker.socket.write(`${session}\n`)
    const end = await ended()
    expect(end).toMatchObject({
      pid: false_.pid,
      reason: expect.stringContaining('the session of another worker'),
    })
    expect(gate.isRunning(session)).toBe(true)
    await owner.echo('still here')
  })
})

describe('hangs', () => {
  test.each<Mode>(['no pongs', 'pongs ahead'])('%s: it is found and ended', async (mode) => {
    const worker = await start(mode, { pingMs: 30 })
    expect((await ended()).reason).toBe('the session worker did not answer for 0.3 s, and was ended')
    expect(isThere(worker.pid)).toBe(false)
  })

  test('stopped by a signal: it is found and ended', async () => {
    const worker = await start('honest', { pingMs: 200 })
    const one = await client(worker)
    await one.greeting()
    process.kill(worker.pid, 'SIGSTOP')
    expect((await ended()).reason).toContain('did not answer for 2 s')
    expect(isThere(worker.pid)).toBe(false)
    await one.closed()
  })

  test('does not read: it is ended before the broker has buffered too much for it', async () => {
    const worker = await start('does not read')
    const settings = { hostname: 'bastion', loginGraceMs: 60_000, banner: 'x'.repeat(4 * 1024 * 1024) }
    const before = process.memoryUsage().arrayBuffers
    for (let sent = 0; sent < 100; sent++) worker.change(settings)
    // 64 MiB, the last message, and a copy of it.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * 1024 * 1024)
    expect((await ended()).reason).toBe('the session worker did not read what the broker sent')
  })

  test('asks without end: what else the broker does goes on meanwhile', async () => {
    let asked = 0
    const gate: SeatGate = {
      ...signInGate(),
      targets: async () => {
        const end = performance.now() + 1
        while (performance.now() < end);
        asked++
        return { targets: [], total: 0 }
      },
    }
    const worker = await start('asks without end', { gate })
    await client(worker)
    let turns = 0
    const count = (): void => {
      turns++
      if (asked < 1_000) setImmediate(count)
    }
    setImmediate(count)
    await until('many requests', () => (asked >= 1_000 ? true : undefined), 60_000)
    // One read has hundreds of them.
    expect(asked / turns).toBeLessThan(20)
    worker.destroy('enough')
    await ended()
  })

  test('asks without end: it is read no further than it is answered', async () => {
    const answers: (() => void)[] = []
    const gate: SeatGate = {
      ...signInGate(),
      targets: () => new Promise((resolve) => answers.push(() => resolve({ targets: [], total: 0 }))),
    }
    const worker = await start('asks without end', { gate, pingMs: 20 })
    await client(worker)
    const full = () => until('many requests', () => (answers.length >= 4_000 ? true : undefined), 60_000)
    await full()
    // Its pongs come behind its requests: they are not missed while the broker reads neither.
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(answers.length).toBeLessThan(6_000)
    expect(ends).toEqual([])
    for (const answer of answers.splice(0)) answer()
    await full()
    worker.destroy('enough')
    for (const answer of answers.splice(0)) answer()
    await ended()
  })

  test('asks at length without end: no more than the broker has room for is read', async () => {
    const answers: (() => void)[] = []
    const gate: SeatGate = {
      ...signInGate(),
      denied: () => new Promise((resolve) => answers.push(resolve)),
    }
    const worker = await start('asks at length without end', { gate, pingMs: 20 })
    await client(worker)
    // Each has a mebibyte, in memory of two.
    const full = () => until('many long requests', () => (answers.length >= 128 ? true : undefined), 60_000)
    await full()
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(answers.length).toBeLessThan(134)
    expect(ends).toEqual([])
    for (const answer of answers.splice(0)) answer()
    await full()
    worker.destroy('enough')
    for (const answer of answers.splice(0)) answer()
    await ended()
  })

  test('records while the disk hangs: signatures go on, and no more is read than the broker has room for', async () => {
    const appends: (() => void)[] = []
    let signed = 0
    const gate: SeatGate = {
      ...signInGate(),
      open: async (_request, onRunning) => {
        onRunning?.('S')
        return { result: 'opened', session: { id: 'S' } } as OpenAnswer
      },
      appendRecording: () => new Promise((resolve) => appends.push(() => resolve({}))),
      sign: async () => {
        signed++
        return new Uint8Array(64)
      },
    }
    const worker = await start('records without end', { gate, pingMs: 20 })
    await client(worker)
    // Each is above four mebibytes, in memory of eight.
    const full = () => until('many appends', () => (appends.length >= 16 ? true : undefined), 60_000)
    await full()
    const before = signed
    await until('signatures', () => (signed >= before + 10 ? true : undefined), 30_000)
    expect(appends.length).toBeLessThan(18)
    expect(ends).toEqual([])
    for (const append of appends.splice(0)) append()
    await full()
    worker.destroy('enough')
    for (const append of appends.splice(0)) append()
    await ended()
  })
})

describe('dies', () => {
  test('by a signal: its sessions are closed with the reason, and it is reported once', async () => {
    world = await gateWorld()
    const worker = await start('opens', { gate: world.gate })
    const one = await client(worker)
    const { more: session } = await one.greeting()
    expect(worker.sessions).toBe(1)
    process.kill(worker.pid, 'SIGKILL')
    expect(await ended()).toEqual({
      pid: worker.pid,
      reason: 'the session worker was ended by SIGKILL',
      sessions: 1,
    })
    await until('the end of its sessions', () => (world?.gate.running === 0 ? true : undefined))
    expect(await world.store.sessions.find(session)).toMatchObject({
      result: 'lost',
      reason: expect.stringContaining('the session worker was ended by SIGKILL'),
    })
    expect(log).toEqual([expect.stringContaining(`session ${session} of ops1`)])
    expect(worker.give('ssh', 0, { address: '192.0.2.1', port: 1 })).toBe(false)
    await one.closed()
  })

  test.each<Mode>(['closes the messages', 'closes the handles'])('%s: it is ended', async (mode) => {
    const worker = await start(mode)
    await client(worker)
    expect((await ended()).reason).toBe(
      'the session worker closed its connection to the broker, and was ended',
    )
    expect(isThere(worker.pid)).toBe(false)
  })

  test('takes too much memory: it is ended', async () => {
    const worker = await start('takes memory', { maxMemory: 300 * 1024 ** 2, pingMs: 250 })
    await client(worker)
    expect((await ended()).reason).toBe('the session worker took more than 300 MiB of memory, and was ended')
  })
})

test('floods standard error: the log gets a few short lines, and the worker goes on', async () => {
  const worker = await start('floods standard error')
  const one = await client(worker)
  await one.greeting()
  await one.echo('still here')
  expect(log.length).toBeGreaterThan(0)
  // 20 a second, for as long as it took.
  expect(log.length).toBeLessThan(150)
  for (const line of log) expect(line.length).toBeLessThan(6_000)
})
