/**
 * What a failover of the database costs: sessions with a key every 25 ms, commands and writes by the API one after
 * the other, and the primary killed again and again. Servers, standby and failover are Patroni's.
 *
 *   npm run bench -- --only failover [--rounds N] [--through hosts|haproxy]
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { sallyport } from '../e2e/recorded.ts'
import type { Login } from '../peers/home.ts'
import { ssh, sshArguments } from '../peers/openssh.ts'
import { findProgram } from '../peers/program.ts'
import { OWNER, runSql } from '../peers/sql.ts'
import { until } from '../until.ts'
import { type Cluster, type Loss, type Member, startCluster } from './patroni.ts'
import { median, table } from './stats.ts'

const DATABASE = 'bastion'
const KEY_MS = 25
const ATTEMPT_MS = 250
const AT_A_TIME = 4
/** Time after a new session for which its neighbour is watched. */
const AFTER_MS = 2000
/** Time before a loss, to compare with. */
const BEFORE_MS = 3000
/** A lease of Patroni has run out long before. */
const FAILOVER_MS = 90_000
/** Of three runs one has lost the whole machine, which costs the time of a lease. */
const LOSSES: readonly Loss[] = ['server', 'server', 'machine']

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '20' },
    through: { type: 'string', default: 'hosts' },
  },
})

interface Failover {
  loss: Loss
  /** Milliseconds from the end of the old primary until the new one takes writes, by the broker's address. */
  primary: number
  /** Milliseconds from then to the end of the first new session's command. */
  session: number
  /** Longest time between two echoes, in milliseconds; `before`: in the seconds before the loss. */
  gap: number
  before: number
  /** The same in a session of the connection whose commands wait for their events. */
  beside: number
}

function progress(what: string): void {
  process.stderr.write(`bench: ${what} …\n`)
}

/** A session with a key every few milliseconds. */
class Typist {
  readonly #child: ChildProcess
  readonly #timer: NodeJS.Timeout
  /** When echoes came. */
  readonly #seen: number[] = []
  sent = 0
  echoed = 0

  private constructor(child: ChildProcess) {
    this.#child = child
    child.stdout!.on('data', (data: Buffer) => {
      this.#seen.push(performance.now())
      this.echoed += data.length
    })
    this.#timer = setInterval(() => {
      this.sent++
      child.stdin!.write('x')
    }, KEY_MS)
  }

  static async start({ home }: Bastion, login: Login): Promise<Typist> {
    const args = ['-tt', ...sshArguments(home, login), "stty raw -echo; printf 're''ady'; exec cat"]
    const child = spawn(findProgram('ssh'), args, { env: home.env(), stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdin.on('error', () => undefined)
    let said = ''
    const hear = (data: Buffer) => {
      said += data.toString('latin1')
    }
    child.stdout.on('data', hear)
    await until('the session', () => said.includes('ready') || undefined)
    child.stdout.off('data', hear)
    return new Typist(child)
  }

  /** Returns the longest time without an echo since `from`. */
  gap(from: number): number {
    const times = [from, ...this.#seen.filter((time) => time > from), performance.now()]
    return Math.max(...times.slice(1).map((time, index) => time - times[index]!))
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await until('the last echoes', () => this.echoed === this.sent || undefined)
    this.#child.kill('SIGTERM')
  }
}

/** Work that goes on until `stop`, of which each piece is acknowledged or not. */
class Busy {
  readonly acknowledged: string[] = []
  refused = 0
  #isOver = false
  readonly #running: Promise<void>

  constructor(name: string, work: (text: string) => Promise<boolean>) {
    this.#running = (async () => {
      for (let n = 0; !this.#isOver; n++) {
        const text = `${name}${n}`
        if (await work(text)) this.acknowledged.push(text)
        else this.refused++
        await sleep(20)
      }
    })()
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#running
  }
}

/** Resolves to the moment when the server behind the port takes writes. */
async function takesWrites(port: number): Promise<number> {
  const end = performance.now() + FAILOVER_MS
  while (performance.now() < end) {
    const client = new pg.Client({ host: '127.0.0.1', port, user: OWNER, database: DATABASE })
    client.on('error', () => undefined)
    try {
      await client.connect()
      while (performance.now() < end) {
        const { rows } = await client.query('select pg_is_in_recovery() as standby')
        if (!rows[0].standby) {
          await client.query("select pg_logical_emit_message(true, 'bench', '')")
          return performance.now()
        }
        await sleep(20)
      }
    } catch {
      await sleep(20)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
  throw new Error(`no server took writes for ${FAILOVER_MS / 1000} s`)
}

/** Tries to open sessions until one is opened. Resolves to that moment. */
async function firstSession({ home }: Bastion, login: Login): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  let running = 0
  const attempt = async () => {
    running++
    const { stdout } = await ssh(home, login, ['echo new'])
    if (stdout === 'new\n') resolve(performance.now())
    running--
  }
  const timer = setInterval(() => {
    if (running < AT_A_TIME) void attempt().catch(() => undefined)
  }, ATTEMPT_MS)
  try {
    return await promise
  } finally {
    clearInterval(timer)
    await until('the end of the attempts', () => running === 0 || undefined, FAILOVER_MS)
  }
}

async function fail(
  bastion: Bastion,
  { alone, beside }: Record<'alone' | 'beside', Typist>,
  { login, primary, port, loss }: { login: Login; primary: Member; port: number; loss: Loss },
): Promise<Failover> {
  const begin = performance.now()
  await sleep(BEFORE_MS)
  const before = alone.gap(begin)
  const from = performance.now()
  await primary.kill(loss)
  const killed = performance.now()
  const [taken, opened] = await Promise.all([takesWrites(port), firstSession(bastion, login)])
  await sleep(AFTER_MS)
  return {
    loss,
    primary: taken - killed,
    session: opened - taken,
    gap: alone.gap(from),
    before,
    beside: beside.gap(from),
  }
}

/** Returns the events and devices that were acknowledged, and that the database has. */
async function account(
  bastion: Bastion,
  port: number,
  { commands, writes }: Record<'commands' | 'writes', readonly string[]>,
): Promise<string[]> {
  const rows = await runSql(port, DATABASE, `select json from audit order by sequence`)
  const objects = (code: string) =>
    rows
      .map(({ json }) => JSON.parse(String(json)) as { code: string; fields: { object?: string } })
      .filter((event) => event.code === code)
      .map(({ fields }) => fields.object ?? '')
  const ran = objects('command').map((text) => text.replace(/^echo /, ''))
  const made = objects('object.create')
  const devices = new Set(
    (await runSql(port, DATABASE, 'select device_name from devices')).map((row) => row['device_name']),
  )
  const lost = (what: readonly string[], there: (text: string) => boolean) =>
    what.filter((text) => !there(text)).length
  const [runs, makes] = [new Set(ran), new Set(made)]
  const twice =
    ran.filter((text) => /^n\d+$/.test(text)).length - [...runs].filter((text) => /^n\d+$/.test(text)).length
  const verified = await sallyport(bastion.broker, ['audit', 'verify'])
  return [
    `commands acknowledged ${commands.length}, events lost ${lost(commands, (text) => runs.has(text))}, there twice ${twice}`,
    `writes by the API acknowledged ${writes.length}, lost ${lost(writes, (text) => devices.has(text))}, their events lost ${lost(writes, (text) => makes.has(text))}`,
    `audit verify: ${verified.stdout.trim() || verified.stderr.trim()}`,
  ]
}

async function measure(cluster: Cluster, dataFolder: string): Promise<void> {
  const { primary: first } = await cluster.settled()
  await runSql(first.port, 'postgres', `create database ${DATABASE} template template0`)
  const isBalanced = flags.through === 'haproxy'
  const ports = isBalanced ? [cluster.balancer] : cluster.members.map(({ port }) => port)
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',')
  const config = { database: { url: `postgres://${OWNER}@${hosts}/${DATABASE}?sslmode=disable` } }
  const bastion = await startBastion({ broker: { dataFolder, config } })
  try {
    const login = bastion.login({ identity: bastion.key.path })
    const socket = `ControlPath=${join(bastion.home.folder, 'm')}`
    const master: Login = { ...login, options: [socket, 'ControlMaster=auto'] }
    const typists = {
      alone: await Typist.start(bastion, login),
      beside: await Typist.start(bastion, master),
    }
    const commands = new Busy('n', async (text) => {
      const { stdout } = await ssh(bastion.home, { ...login, options: [socket] }, [`echo ${text}`])
      return stdout === `${text}\n`
    })
    const writes = new Busy('a', async (text) => {
      const device = { device_name: text, host: '127.0.0.1' }
      const answer = await bastion.broker.api('POST', '/devices', device).catch(() => undefined)
      return (answer?.status ?? 0) < 300 && answer !== undefined
    })
    const runs: Failover[] = []
    for (let round = 0; round < Number(flags.rounds); round++) {
      const { primary, standby } = await cluster.settled()
      await until(
        'the database',
        async () => (await bastion.broker.api('GET', '/users')).status === 200 || undefined,
        FAILOVER_MS,
      )
      const loss = LOSSES[round % LOSSES.length]!
      progress(`failover ${round + 1} from ${primary.name}, loss of its ${loss}`)
      const port = isBalanced ? cluster.balancer : standby.port
      runs.push(await fail(bastion, typists, { login, primary, port, loss }))
      const { primary: took, session, gap, beside } = runs.at(-1)!
      progress(
        `primary ${took.toFixed(0)} ms, session ${session.toFixed(0)} ms, gap ${gap.toFixed(0)} ms, beside commands ${beside.toFixed(0)} ms`,
      )
    }
    await Promise.all([commands.stop(), writes.stop()])
    for (const typist of Object.values(typists)) await typist.stop()
    const { primary } = await cluster.settled()
    await until(
      'the journal',
      () => readdirSync(join(dataFolder, 'journal')).length === 0 || undefined,
      FAILOVER_MS,
    )
    process.stdout.write(`${show(runs)}\n\n`)
    const lines = await account(bastion, primary.port, {
      commands: commands.acknowledged,
      writes: writes.acknowledged,
    })
    process.stdout.write(`${lines.join('\n')}\n`)
    process.stdout.write(`commands refused ${commands.refused}, writes refused ${writes.refused}\n`)
  } finally {
    await bastion.stop()
  }
}

function show(runs: readonly Failover[]): string {
  const columns: [string, (run: Failover) => number][] = [
    ['until the new primary', ({ primary }) => primary],
    ['then until a new session', ({ session }) => session],
    ['longest gap of a running one', ({ gap }) => gap],
    ['before the loss', ({ before }) => before],
    ['of one beside commands', ({ beside }) => beside],
  ]
  const row = (name: string, of: (values: readonly number[]) => number, some: readonly Failover[]) => [
    name,
    String(some.length),
    ...columns.map(([, value]) => of(some.map(value)).toFixed(0)),
  ]
  const rows = [...new Set(LOSSES)].flatMap((loss) => {
    const some = runs.filter((run) => run.loss === loss)
    if (some.length === 0) return []
    return [
      row(`loss of the ${loss}, median`, median, some),
      row(`loss of the ${loss}, most`, (values) => Math.max(...values), some),
    ]
  })
  return table([
    [`failovers through ${flags.through}, ms`, 'runs', ...columns.map(([name]) => name)],
    ...rows,
  ])
}

const dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-failover-'))
try {
  progress('two servers with Patroni')
  const cluster = await startCluster()
  try {
    await measure(cluster, dataFolder)
  } finally {
    await cluster.stop()
  }
} finally {
  rmSync(dataFolder, { recursive: true, force: true })
}
