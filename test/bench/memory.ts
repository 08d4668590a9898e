/**
 * The memory of idle sessions and the longest pause of an event loop beside them: of a new broker at its
 * start, with each number of sessions, and after all have ended.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Broker, startBroker } from '../peers/broker.ts'
import { generateKey } from '../peers/keys.ts'
import { provision } from '../peers/provision.ts'
import { until } from '../until.ts'
import type { CrowdNews, CrowdOrder } from './crowd.ts'
import { ProcessTree } from './processor.ts'
import { median, table } from './stats.ts'

const MIB = 1024 * 1024
const KIB = 1024
/** Sessions of one user, below the broker's limit. */
const PER_USER = 400
/** Time in which what the last sessions left behind is collected. */
const SETTLE_MS = 10_000
/** In each window all sessions are reviewed at least once. */
const PAUSE_WINDOWS = 4
const PAUSE_WINDOW_MS = 11_000
/** The monitor of the event loop counts its own period, ten milliseconds, into each delay. */
const MONITOR_MS = 10
const LAG = /^sallyport_nodejs_eventloop_lag_max_seconds(\{[^}]*\})? (\S+)$/gm

export interface Point {
  what: string
  sessions: number
  processes: { number: number; own: number; files: number }[]
  /** Resident bytes of all processes, with the files that they share counted once. */
  resident: number
  /** Longest pause of the worst loop in each window, in milliseconds; on a busy machine the median holds. */
  pauses: number[]
}

/** Measures at the start, at each number of sessions (which rise), and after the end of all. */
export async function measureMemory(
  sessions: readonly number[],
  progress: (what: string) => void,
): Promise<Point[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
  const hostKey = await generateKey(folder)
  const key = await generateKey(folder)
  const crowd = startCrowd(hostKey.path)
  const broker = await startBroker({ asInstalled: true })
  try {
    const tree = new ProcessTree(broker.pid)
    const points = [await point(broker, tree, 'at start', 0)]
    const logins: string[] = []
    for (let user = 0; user < Math.max(...sessions) / PER_USER; user++) {
      const { login } = await provision(broker, {
        user: `ops${user}`,
        device: `srv${user}`,
        port: await crowd.port,
        account: 'crowd',
        credentials: [{ type: 'password', password: 'of the crowd' }],
        subprotocols: ['SSH_SHELL'],
        sshPublicKeys: [key.publicKey],
      })
      logins.push(login)
    }
    for (const count of sessions) {
      progress(`${count} idle sessions`)
      await crowd.order({ order: 'open', count, port: broker.ports.ssh, logins, key: key.path })
      points.push(await point(broker, tree, `${count} sessions`, count))
    }
    progress('the end of all')
    await crowd.order({ order: 'close' })
    await until(
      'the end of all sessions',
      async () => {
        const rows = await broker.must<unknown[]>('GET', '/sessions?status=current')
        return rows.length === 0 || undefined
      },
      120_000,
    )
    await tree.quiet()
    points.push(await point(broker, tree, 'after their end', 0))
    return points
  } finally {
    crowd.stop()
    await broker.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Starts the crowd's program; orders run one at a time. */
function startCrowd(hostKey: string) {
  const child = fork(join(import.meta.dirname, 'crowd.ts'), [hostKey], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  const news = async (): Promise<CrowdNews> => {
    const [message] = (await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => [{ news: 'failed', why: 'the crowd has ended' }]),
    ])) as [CrowdNews]
    if (message.news === 'failed') throw new Error(message.why)
    return message
  }
  const port = news().then((message) => (message.news === 'listening' ? message.port : 0))
  return {
    port,
    async order(order: CrowdOrder): Promise<void> {
      child.send(order)
      await news()
    },
    stop: () => child.disconnect(),
  }
}

async function point(broker: Broker, tree: ProcessTree, what: string, sessions: number): Promise<Point> {
  await sleep(SETTLE_MS)
  await longestPause(broker)
  const pauses: number[] = []
  for (let window = 0; window < PAUSE_WINDOWS; window++) {
    await sleep(PAUSE_WINDOW_MS)
    pauses.push(await longestPause(broker))
  }
  const processes = tree.memory()
  const files = Math.max(...processes.map((one) => one.files))
  return {
    what,
    sessions,
    processes,
    resident: processes.reduce((total, { own }) => total + own, files),
    pauses,
  }
}

/** Returns the longest pause of an event loop since the last call, in milliseconds. */
async function longestPause(broker: Broker): Promise<number> {
  const text = await new Promise<string>((resolve, reject) => {
    get({ host: '127.0.0.1', port: broker.ports.metrics, path: '/metrics' }, (response) => {
      let body = ''
      response.on('data', (data) => {
        body += data
      })
      response.on('end', () => resolve(body))
    }).on('error', reject)
  })
  const lags = [...text.matchAll(LAG)].map(([, , seconds]) => Number(seconds) * 1000)
  if (lags.length === 0) throw new Error('the metrics have no delay of the event loop')
  return Math.max(...lags) - MONITOR_MS
}

export function showMemory(points: readonly Point[]): string {
  const start = points[0]
  return table([
    [
      'memory',
      'resident, MiB',
      'to start',
      'KiB a session',
      'longest pause, ms: median',
      'most',
      'of each process, and files',
    ],
    ...points.map(({ what, sessions, processes, resident, pauses }) => [
      what,
      (resident / MIB).toFixed(0),
      `× ${(resident / (start?.resident ?? 1)).toFixed(2)}`,
      sessions === 0 ? '-' : ((resident - (start?.resident ?? 0)) / sessions / KIB).toFixed(0),
      median(pauses).toFixed(1),
      Math.max(...pauses).toFixed(1),
      [...processes.map(({ own }) => own), Math.max(...processes.map(({ files }) => files))]
        .map((bytes) => (bytes / MIB).toFixed(0))
        .join(' + '),
    ]),
  ])
}
