/**
 * A session worker that is killed, or stopped, under many sessions of real clients: those of the other worker go on, its own
 * are closed, accounted for and sealed at once.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { metricsOf } from '../peers/broker.ts'
import { ssh, sshArguments } from '../peers/openssh.ts'
import { descendants } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { times } from '../times.ts'
import { until } from '../until.ts'
import { type Bastion, type SessionRow, startBastion } from './bastion.ts'
import { sallyport } from './recorded.ts'

/** Sessions of both workers together; 200 take a minute. */
const SESSIONS = times(40, 200)
const HALF = SESSIONS / 2
/** Clients that sign in at a time. */
const AT_ONCE = 8
const SLOW = { timeout: 300_000 }
const LONG_MS = 60_000
const MIB = 1024 * 1024
const LAG = /^sallyport_worker_eventloop_lag_max_seconds\{worker="[12]"\} (\S+)$/gm

class Client {
  readonly child: ChildProcess
  #text = ''

  constructor(bastion: Bastion) {
    const login = bastion.login({ identity: bastion.key.path })
    this.child = spawn(findProgram('ssh'), [...sshArguments(bastion.home, login), 'cat'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: bastion.home.env(),
    })
    this.child.stdout!.on('data', (piece) => {
      this.#text += piece
    })
    this.child.stdin!.on('error', () => undefined)
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  /** Sends a line through the session, and waits until the target has sent it back. */
  async echo(line: string): Promise<void> {
    this.child.stdin!.write(`${line}\n`)
    const isBack = () => (this.#text.includes(`${line}\n`) ? true : undefined)
    await until(() => `the echo of ${line}; came: ${this.#text}`, isBack, LONG_MS)
  }

  async end(): Promise<void> {
    this.child.stdin!.end()
    if (!this.isRunning) return
    const left = setTimeout(() => this.child.kill('SIGKILL'), 10_000)
    await once(this.child, 'exit')
    clearTimeout(left)
  }
}

const descriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length
const resident = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

describeWithPeers('a session worker under many sessions', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  const clients: Client[] = []

  beforeAll(async () => {
    bastion = await startBastion({ broker: { config: { workers: 2 } } })
  })
  afterAll(() => bastion?.stop())
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.end()))
  })

  const served = async () => {
    const done = await ssh(bastion.home, bastion.login({ identity: bastion.key.path }), ['echo served'])
    expect(done).toMatchObject({ code: 0, stdout: 'served\n' })
  }
  const workers = () => descendants(bastion.broker.pid)
  const current = () => bastion.broker.must<SessionRow[]>('GET', '/sessions?status=current&limit=-1')
  const both = () => until('two workers', () => (workers().length === 2 ? workers() : undefined), LONG_MS)

  async function connectAll(): Promise<void> {
    while (clients.length < SESSIONS) {
      const some = Array.from(
        { length: Math.min(AT_ONCE, SESSIONS - clients.length) },
        () => new Client(bastion),
      )
      clients.push(...some)
      await Promise.all(some.map((client) => client.echo('begun')))
    }
  }

  /** Checks all that has to be so after the death of one worker, which had half of the sessions. */
  async function expectHalfLost(before: Set<string>, reason: string): Promise<void> {
    const running = await until(
      () => `${HALF} clients that run; ${clients.filter((client) => client.isRunning).length} do`,
      () => {
        const left = clients.filter((client) => client.isRunning)
        return left.length <= HALF ? left : undefined
      },
      LONG_MS,
    )
    expect(running).toHaveLength(HALF)
    await Promise.all(running.map((client) => client.echo('going on')))
    const left = await until(
      `${HALF} sessions in the list`,
      async () => {
        const rows = await current()
        return rows.length <= HALF ? rows : undefined
      },
      LONG_MS,
    )
    expect(left).toHaveLength(HALF)
    const closed = (await bastion.closedSessions()).filter(({ id }) => !before.has(id))
    expect(closed).toHaveLength(HALF)
    for (const row of closed) {
      expect(row).toMatchObject({
        result: 'lost',
        reason: expect.stringContaining(reason),
        recording: { state: 'recovered' },
      })
    }
    const verified = await sallyport(bastion.broker, ['recordings', 'verify'])
    expect(verified).toMatchObject({ code: 0, stderr: '' })
    for (const { id } of closed) expect(verified.stdout).toContain(`${id}  ok, recovered`)
    const losses = await bastion.events('worker.lost', 1)
    expect(losses.at(-1)).toMatchObject({ count: HALF, reason: expect.stringContaining(reason) })
    await served()
  }

  test('stands still for a moment: the metrics say for how long', async () => {
    const [victim] = await both()
    process.kill(victim!, 'SIGSTOP')
    await sleep(1_500)
    process.kill(victim!, 'SIGCONT')
    const longest = async () => {
      const delays = (await metricsOf(bastion.broker)).matchAll(LAG)
      const most = Math.max(...[...delays].map(([, seconds]) => Number(seconds)))
      return most > 1 ? most : undefined
    }
    expect(await until('the delay', longest)).toBeLessThan(60)
  })

  test.each<[NodeJS.Signals, string]>([
    ['SIGKILL', 'the session worker was ended by SIGKILL'],
    ['SIGSTOP', 'the session worker did not answer for 10 s, and was ended'],
  ])(
    '%s: half of the sessions go on, the others are closed and sealed at once',
    SLOW,
    async (signal, reason) => {
      const { pid } = bastion.broker
      const [victim] = await both()
      await served()
      await until('no session', async () => ((await current()).length === 0 ? true : undefined), LONG_MS)
      const idle = descriptors(pid)
      const idleWorker = Math.max(...workers().map(descriptors))
      const before = new Set((await bastion.closedSessions()).map(({ id }) => id))
      await connectAll()
      expect(await current()).toHaveLength(SESSIONS)
      process.kill(victim!, signal)
      await expectHalfLost(before, reason)
      const again = await both()
      expect(again).not.toContain(victim)
      await Promise.all(clients.splice(0).map((client) => client.end()))
      await until('no session', async () => ((await current()).length === 0 ? true : undefined), LONG_MS)
      // Threads begin when they have work, and have some; each session, ended or lost, would leave one.
      const back = () => (descriptors(pid) < idle + SESSIONS ? true : undefined)
      await until(() => `${idle} descriptors; has ${descriptors(pid)}`, back, LONG_MS)
      for (const worker of again) {
        const few = () => (descriptors(worker) < idleWorker + HALF ? true : undefined)
        await until(() => `${idleWorker} descriptors; has ${descriptors(worker)}`, few, LONG_MS)
        expect(resident(worker)).toBeLessThan(400 * MIB)
      }
      expect(await bastion.events('worker.loop')).toEqual([])
    },
  )
})
