/**
 * A session worker that was taken over: code of the attacker runs in a real one, in its cage, beside a second worker with
 * the session of another user. It shows what it cannot do, by messages to the broker and by the system's calls.
 */
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { FRAME } from '../../recordings/container/frames.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { confined } from '../../src/confine/command.ts'
import { workerCage } from '../../src/confine/worker-cage.ts'
import type { AuthenticateAnswer, Gate, OpenAnswer, OpenSession, Source } from '../../src/contract/gate.ts'
import { MessageReader } from '../../src/contract/message-reader.ts'
import { encodeMessage } from '../../src/contract/wire.ts'
import { type GateMethod, HANDLES_DESCRIPTOR, WORKER_DESCRIPTORS } from '../../src/contract/worker.ts'
import { SessionWorker, type WorkerCommand, type WorkerEnd } from '../../src/workers/process.ts'
import { RATES } from '../../src/workers/request-pace.ts'
import { PROGRAM } from '../peers/broker.ts'
import { until } from '../until.ts'
import { Client, commonOptions, doors, fakeCommand } from '../workers/fake-workers.ts'
import { signInOf } from '../workers/sign-in.ts'
import { type GateWorld, gateWorld, HOST_KEY, writing } from '../workers/world.ts'
import { CONTROL_VARIABLE, type Order } from './attacker.ts'

const HERE = import.meta.dirname
const MAIN = join(dirname(process.env[PROGRAM]!), '../proxies/worker/main.js')
const MEMORY = 2 ** 30
/** Without a kind of order's number, which `Attacker` gives. */
type Unnumbered = Order extends infer O ? (O extends Order ? Omit<O, 'id'> : never) : never

/** The attacker's end of the control connection. */
class Attacker {
  readonly #socket: Socket
  readonly #results = new Map<number, (result: unknown) => void>()
  #next = 0
  isGone = false

  constructor(socket: Socket) {
    this.#socket = socket
    const reader = new MessageReader()
    socket.on('data', (piece) => {
      for (const { id, result } of reader.read(piece) as { id: number; result: unknown }[])
        this.#results.get(id)?.(result)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.isGone = true
      for (const resolve of this.#results.values()) resolve('gone')
    })
  }

  /** Resolves to the result, or `gone` if the worker has ended instead. */
  order(order: Unnumbered): Promise<unknown> {
    const id = this.#next++
    return new Promise((resolve) => {
      this.#results.set(id, resolve)
      this.#socket.write(Buffer.concat(encodeMessage({ ...order, id })))
    })
  }

  ask(method: GateMethod, request: object): Promise<unknown> {
    return this.order({ do: 'ask', method, request })
  }
}

let world: GateWorld
let control: Server
let worker: SessionWorker
let attacker: Attacker
/** Runs honest code, and has a session of its own. */
let other: SessionWorker
let foreign: string
/** The client of that session. */
let bystander: Client
let ends: WorkerEnd[]
const log: string[] = []
let clients: Client[]
let closers: (() => void)[]
/** Whether the attacker has had a session, which would be there in the next test. */
let hasOpened: boolean

/** The command of the product's workers, with the attacker's code. */
function takenOver(port: number): WorkerCommand {
  const cage = workerCage({
    runAs: undefined,
    keepOpen: WORKER_DESCRIPTORS,
    memory: MEMORY,
  })
  return confined(
    {
      arguments: ['--disable-warning=ExperimentalWarning', '--import', join(HERE, 'attacker.ts'), MAIN],
      env: { NODE_CHANNEL_FD: String(HANDLES_DESCRIPTOR), [CONTROL_VARIABLE]: String(port) },
    },
    { ...cage, readable: [...cage.readable, HERE] },
  )
}

async function startWorker(command: WorkerCommand): Promise<SessionWorker> {
  const options = await commonOptions(log, world.gate)
  return await SessionWorker.start({
    ...options,
    settings: { ...options.settings, telnet: { allow: ['127.0.0.0/8'] } },
    command,
    onEnded: (end) => ends.push(end),
  })
}

/** Connects a client to the worker; returns its address as the broker sees it. */
async function connected(to: SessionWorker): Promise<{ client: Client; source: Source }> {
  let source: Source | undefined
  const bound = await doors((handle, from) => {
    source = from
    to.give('telnet', handle.fd, from)
    handle.close()
  })
  closers.push(() => bound.close())
  const client = new Client(bound)
  clients.push(client)
  return { client, source: await until('the connection', () => source) }
}

/** Starts a worker with the attacker in it. */
async function takeOver(): Promise<void> {
  const controlled = new Promise<Attacker>((resolve) => {
    control = createServer((socket) => resolve(new Attacker(socket)))
  })
  await new Promise<void>((resolve) => control.listen(0, '127.0.0.1', resolve))
  worker = await startWorker(takenOver((control.address() as AddressInfo).port))
  attacker = await controlled
}

/** Ends the taken-over worker, if it is there. */
async function endWorker(): Promise<void> {
  worker.destroy('the test is over')
  await until('the end of the worker', () => (attacker.isGone && ends.length > 0 ? true : undefined))
  control.close()
}

beforeAll(async () => {
  world = await gateWorld()
  clients = []
  closers = []
  other = await startWorker(fakeCommand('opens'))
  bystander = (await connected(other)).client
  foreign = (await bystander.greeting()).more
})
afterAll(async () => {
  if (!attacker.isGone) await endWorker()
  other.destroy('the tests are over')
  await until('its end', () => (ends.some(({ pid }) => pid === other.pid) ? true : undefined))
  bystander.end()
  await world.remove()
})
beforeEach(async () => {
  ends = []
  clients = []
  closers = []
  hasOpened = false
  // One that has lost nothing by its attempt makes the next one.
  if (attacker === undefined || attacker.isGone) await takeOver()
})
afterEach(async () => {
  if (hasOpened || attacker.isGone) await endWorker()
  for (const client of clients) client.end()
  for (const close of closers) close()
})

/** The proof of `ops1`, who connects to the taken-over worker and whose password the attacker reads. */
async function signedIn(): Promise<{ identity: string; source: Source }> {
  const { source } = await connected(worker)
  hasOpened = true
  const answer = (await attacker.ask('authenticate', signInOf('ops1', source))) as AuthenticateAnswer
  if (answer.result !== 'accepted') throw new Error(JSON.stringify(answer))
  return { identity: answer.identity.token, source }
}

async function openedSession(): Promise<OpenSession> {
  const answer = (await attacker.ask('open', { ...(await signedIn()), protocol: 'SSH' })) as OpenAnswer
  if (answer.result !== 'opened') throw new Error(JSON.stringify(answer))
  return answer.session
}

/** The gate as the attacker has it, with all statements that it has had signed. */
function attackersGate(signed: Uint8Array[] = []): Gate {
  const ask = (method: GateMethod) => async (request: object) => {
    if ('statement' in request) signed.push(request.statement as Uint8Array)
    const answer = await attacker.ask(method, request)
    if (typeof answer === 'string') throw new Error(answer)
    return answer
  }
  return new Proxy({} as Gate, { get: (_none, method: GateMethod) => ask(method) })
}

/** The broker has ended the worker, whose sessions are closed, and the session of the other worker runs. */
async function expectEnded(reason: string): Promise<void> {
  const end = await until('the end of the worker', () => ends[0])
  expect(end).toMatchObject({ pid: worker.pid, reason: expect.stringContaining(reason) })
  await until('the end of the attacker', () => (attacker.isGone ? true : undefined))
  expect(existsSync(`/proc/${worker.pid}`)).toBe(false)
  await until('the end of its sessions', () => (world.gate.running === 1 ? true : undefined))
  expect(world.gate.isRunning(foreign)).toBe(true)
  await bystander.echo('not disturbed')
}

test('the attacker is in: it signs its own user in, and opens and records that session', async () => {
  const session = await openedSession()
  expect(await attacker.ask('hostKey', { session: session.id, key: HOST_KEY })).toEqual({
    result: 'accepted',
    credentials: [{ type: 'password', password: 'root password' }],
  })
  const writer = await writing(attackersGate(), session)
  writer.write(FRAME.channelOpen, 0, Buffer.from('{"kind":"shell"}'))
  expect(await writer.close({ result: 'success' })).toMatchObject({ state: 'sealed' })
})

describe('by messages it cannot', () => {
  test('open a session without a proof, by a made-up sign-in', async () => {
    const { source } = await connected(worker)
    expect(await attacker.ask('open', { identity: 'made-up', protocol: 'SSH', source })).toMatch(
      /no longer signed in/,
    )
    const wrong = { ...signInOf('ops2', source), proof: { method: 'password', password: 'guessed' } }
    expect(await attacker.ask('authenticate', wrong)).toEqual({ result: 'rejected' })
    await until('the end of its sessions', () => (world.gate.running === 1 ? true : undefined))
  })

  test('sign in from an address that no client of its own has', async () => {
    const source = { address: '192.0.2.99', port: 4711 }
    expect(await attacker.ask('authenticate', signInOf('ops1', source))).toBe(
      'there is no connection from there',
    )
  })

  test('get a second credential by one proof, of the same target or another', async () => {
    const mine = await signedIn()
    const open = (target?: string) =>
      attacker.ask('open', { ...mine, protocol: 'SSH', ...(target !== undefined && { target }) })
    const sessions = (await Promise.all([open(), open()])) as Extract<OpenAnswer, { result: 'opened' }>[]
    const keyOf = ({ session }: { session: OpenSession }) =>
      attacker.ask('hostKey', { session: session.id, key: HOST_KEY })
    expect(await keyOf(sessions[0]!)).toMatchObject({
      result: 'accepted',
      credentials: [{ type: 'password' }],
    })
    expect(await keyOf(sessions[1]!)).toMatchObject({ result: 'refused' })
    for (const target of [undefined, 'root@local:srv1:ssh', 'root@local:srv2:ssh']) {
      expect(await open(target)).toMatchObject({ result: 'denied' })
    }
  })

  test('list or open targets that its user may not', async () => {
    const mine = await signedIn()
    expect(await attacker.ask('targets', { identity: mine.identity, protocol: 'SSH' })).toEqual({
      targets: [{ target: 'root@local:srv1:ssh', description: 'web' }],
      total: 1,
    })
    const request = { ...mine, protocol: 'SSH', target: 'root@local:srv2:ssh' }
    expect(await attacker.ask('open', request)).toMatchObject({ result: 'denied' })
  })

  test.each<[GateMethod, object]>([
    ['sign', { statement: new Uint8Array(64) }],
    ['appendRecording', { offset: 0, parts: [new Uint8Array(4)] }],
    ['endRecording', {}],
    ['event', { code: 'command', fields: { object: 'rm -rf /' } }],
    ['hostKey', { key: new Uint8Array(32) }],
    ['live', { frames: [] }],
    ['close', { result: 'success', bytesIn: 0, bytesOut: 0, rightsUsed: [] }],
  ])('name the session of another worker (%s): it is ended', async (method, request) => {
    const before = await world.codes()
    expect(await attacker.ask(method, { session: foreign, ...request })).toBe('gone')
    await expectEnded('it named the session of another worker')
    expect(await world.codes()).toEqual(before)
  })

  test.each([
    ['who acted', { object: 'ls', user: 'admin' }],
    ['from where', { object: 'ls', client_ip: '203.0.113.9' }],
    ['whose session', { object: 'ls', session: 'S' }],
  ])('say in an event %s: it is ended', async (_what, fields) => {
    const { id: session } = await openedSession()
    expect(await attacker.ask('event', { session, code: 'command', fields })).toBe('gone')
    await expectEnded('because it broke the rules of its messages')
    expect(await world.codes()).not.toContain('command')
  })

  test('report what only the broker does: it is ended', async () => {
    const { id: session } = await openedSession()
    const fields = { user: 'admin', object: 'ops2' }
    expect(await attacker.ask('event', { session, code: 'object.delete', fields })).toBe('gone')
    await expectEnded('because it broke the rules of its messages')
  })

  test('fill the audit log: the events of a session have a rate, and long ones count as many', async () => {
    const { id: session } = await openedSession()
    const long = 'x'.repeat(10_000)
    const fields = { path: long, reason: long, sha256: long, direction: long, subprotocol: long }
    const milliseconds = 3_000
    const request = { session, code: 'file.transfer', fields }
    const answered = await attacker.order({ do: 'repeat', method: 'event', request, milliseconds })
    const { burst, perSecond } = RATES.event
    // Each of its values is kept up to 2 KiB, and an event of 1 KiB counts as one.
    const most = (burst + (perSecond * milliseconds) / 1_000) / 10 + 1
    expect(answered).toBeGreaterThan(0)
    expect(answered).toBeLessThanOrEqual(most)
    const written = (await world.codes()).filter((code) => code === 'file.transfer')
    expect(written.length).toBeLessThanOrEqual(most + 1)
    await bystander.echo('not disturbed')
  })

  test('send two events of a session at a time: it is ended', async () => {
    const { id: session } = await openedSession()
    const event = () => attacker.ask('event', { session, code: 'command', fields: { object: 'ls' } })
    await Promise.all(Array.from({ length: 200 }, event))
    await expectEnded('it sent two events of a session at a time')
  })

  test.each([
    ['a method of the broker', { type: 'ask', id: 1, method: 'kill', request: { session: 'S' } }],
    ['a message of the broker', { type: 'notice', notice: { type: 'stop', session: 'S', reason: '' } }],
    ['a message too many', { type: 'exec', file: '/bin/sh' }],
  ])('send %s: it is ended', async (_what, message) => {
    await attacker.order({ do: 'send', message })
    await expectEnded('because it broke the rules of its messages')
  })

  test('have a checkpoint signed that goes back, or that is of another session', async () => {
    const session = await openedSession()
    const signed: Uint8Array[] = []
    const writer = await writing(attackersGate(signed), session)
    for (let round = 0; round < 2; round++) {
      writer.write(FRAME.channelOpen, round, Buffer.from('{"kind":"shell"}'))
      await writer.flush()
    }
    expect(signed.length).toBeGreaterThan(1)
    const again = { session: session.id, statement: signed[0]! }
    expect(await attacker.ask('sign', again)).toMatch(/^expected the next checkpoint of this recording/)
    const second = await openedSession()
    expect(await attacker.ask('sign', { session: second.id, statement: signed.at(-1)! })).toMatch(
      /of a checkpoint of this session/,
    )
    await writer.close({ result: 'success' })
  })

  test('change or cut what its recording has: the broker appends only, and accounts by what was signed', async () => {
    const session = await openedSession()
    const writer = await writing(attackersGate(), session)
    writer.write(FRAME.channelOpen, 0, Buffer.from('{"kind":"shell"}'))
    const { size, digest } = await writer.close({ result: 'success' })
    const parts = [new Uint8Array(4)]
    for (const offset of [0, size]) {
      expect(await attacker.ask('appendRecording', { session: session.id, offset, parts })).toMatch(
        /^expected/,
      )
    }
    expect(await attacker.ask('beginRecording', { session: session.id, parts })).toMatch(/^expected/)
    const said = { session: session.id, result: 'success', bytesIn: 0, bytesOut: 0, rightsUsed: [] }
    expect(await attacker.ask('close', said)).toBeUndefined()
    expect(await world.store.sessions.find(session.id)).toMatchObject({
      recording: { state: 'sealed', size, digest },
    })
  })
})

describe('by the system it cannot', () => {
  const attempt = (what: (Order & { do: 'try' })['what'], on: string | number) =>
    attacker.order({ do: 'try', what, on: String(on) })

  test('read or write a file of the broker; it can read its own program', async () => {
    const recording = (await findRecording(world.recordings.root, foreign))!.directory
    const files = [
      world.path,
      world.keyFile,
      world.recordings.root,
      join(recording, 'key.age'),
      '/etc/shadow',
    ]
    for (const file of files) {
      expect(existsSync(file), file).toBe(true)
      expect(await attempt('read', file), file).toBe('EACCES')
      expect(await attempt('write', file), file).toBe('EACCES')
    }
    expect(await attempt('write', join(world.recordings.root, 'new'))).toBe('EACCES')
    expect(await attempt('read by Node', world.path)).toBe('ERR_ACCESS_DENIED')
    expect(await attempt('read', MAIN)).toBe('done')
  })

  test.each([
    ['the broker', () => process.pid],
    ['another worker', () => other.pid],
  ])('look into the memory of %s, trace it or signal it', async (_who, pid) => {
    for (const file of ['mem', 'environ', 'maps', 'fd']) {
      expect(await attempt('read', `/proc/${pid()}/${file}`), file).toMatch(/^(EACCES|EPERM|ENOENT)$/)
    }
    expect(await attempt('trace', pid())).toBe('EPERM')
    expect(await attempt('signal', pid())).toBe('EPERM')
  })

  test('start a program, or become one', async () => {
    expect(await attempt('become another program', '/bin/true')).toBe('EPERM')
    expect(await attempt('start a program by Node', '/bin/true')).toBe('ERR_ACCESS_DENIED')
  })

  test('listen on a port', async () => {
    expect(await attempt('listen', '')).toBe('EPERM')
    expect(await attempt('listen by Node', '127.0.0.1')).toMatch(/^(EACCES|EPERM)$/)
  })
})

test('it cannot keep on when the broker ends it, and nothing of it is left', async () => {
  const { id } = await openedSession()
  worker.destroy('was ended by an administrator')
  await expectEnded('was ended by an administrator')
  expect(await world.store.sessions.find(id)).toMatchObject({ result: 'lost' })
  expect(world.gate.isRunning(id)).toBe(false)
})
