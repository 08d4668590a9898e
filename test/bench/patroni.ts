/** Two of Debian's PostgreSQL servers under Patroni, with etcd and haproxy, on 127.0.0.1 and as an ordinary user. */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Haproxy, startHaproxy } from '../peers/haproxy.ts'
import { asOrdinaryUser, signal, withPrefix } from '../peers/postgres.ts'
import { type Daemon, descendants, freePort, isListening, startDaemon } from '../peers/process.ts'
import { findProgram, missingPackages } from '../peers/program.ts'
import { OWNER, runSql } from '../peers/sql.ts'
import { until } from '../until.ts'

const HOST = '127.0.0.1'
/** Time for a member to rejoin, a copy of the primary included. */
const REJOIN_MS = 120_000
const START_MS = 60_000
/** Least of Patroni: a primary's machine that is gone keeps its lease for that long, in seconds. */
const TTL_S = 20
const LOOP_S = 1
const RETRY_S = 3
const SYNC_STANDBY = 'sync_standby'

/** `server`: its Patroni lives on and sees it end. `machine`: Patroni ends with it, and its lease runs out. */
export type Loss = 'server' | 'machine'

export interface Member {
  name: string
  port: number
  /** Kills the processes, as SIGKILL does. */
  kill(loss: Loss): Promise<void>
}

export interface Cluster {
  members: readonly [Member, Member]
  /** Port of haproxy, which connects to the primary. */
  balancer: number
  /** Resolves to the primary and its synchronous standby when both are there; starts what was killed. */
  settled(): Promise<{ primary: Member; standby: Member }>
  stop(): Promise<void>
}

interface Node extends Member {
  rest: number
  log(): string
  start(): Promise<void>
  stop(): Promise<void>
}

/** @throws Error that names the packages which are missing */
export async function startCluster(): Promise<Cluster> {
  const missing = missingPackages(['patroni', 'etcd', 'haproxy', 'postgres'])
  if (missing.length > 0)
    throw new Error(`the failover needs apt-get install --no-install-recommends ${missing.join(' ')}`)
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-patroni-'))
  const started: { stop(): Promise<void> }[] = []
  const stop = async () => {
    for (const part of started.reverse()) await part.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const prefix = await asOrdinaryUser(folder)
    const { port: etcd, daemon } = await startEtcd(prefix, join(folder, 'etcd'))
    started.push(daemon)
    const nodes: Node[] = []
    for (const name of ['db1', 'db2']) {
      const node = await makeNode(prefix, { folder, name, etcd })
      started.push(node)
      nodes.push(node)
      await node.start()
      // The first one makes the cluster.
      await until(
        () => `${name}: ${node.log()}`,
        async () => (await isListening(node.port)) || undefined,
        START_MS,
      )
      if (nodes.length === 1)
        await until(
          () => `the primary: ${node.log()}`,
          () => isPrimary(node),
          START_MS,
        )
    }
    const balancer = await freePort()
    started.push(await balance(balancer, nodes))
    const members = [nodes[0]!, nodes[1]!] as const
    return { members, balancer, settled: () => settled(members), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startEtcd(prefix: string[], folder: string): Promise<{ port: number; daemon: Daemon }> {
  const [port, peers] = [await freePort(), await freePort()]
  const [clientUrl, peerUrl] = [`http://${HOST}:${port}`, `http://${HOST}:${peers}`]
  const args = [
    ...['--data-dir', folder, '--name', 'etcd', '--initial-cluster', `etcd=${peerUrl}`],
    ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
  ]
  const daemon = await startDaemon(
    ...withPrefix(prefix, findProgram('etcd'), args),
    /ready to serve client requests/,
    { cwd: '/' },
  )
  return { port, daemon }
}

async function makeNode(
  prefix: string[],
  { folder, name, etcd }: { folder: string; name: string; etcd: number },
): Promise<Node> {
  const [port, rest] = [await freePort(), await freePort()]
  const data = join(folder, name)
  const file = join(folder, `${name}.yml`)
  // JSON is YAML, too.
  writeFileSync(file, JSON.stringify(configuration({ folder, name, data, port, rest, etcd })))
  let daemon: Daemon | undefined
  const server = () => pidOf(data)
  const start = async () => {
    daemon = await startDaemon(
      ...withPrefix(prefix, findProgram('patroni'), [file]),
      () => isListening(rest),
      { cwd: '/', grace: 20_000 },
    )
  }
  return {
    name,
    port,
    rest,
    log: () => daemon?.log() ?? '',
    start: async () => {
      if (!daemon) await start()
    },
    async kill(loss) {
      const pid = server()
      const all = pid === undefined ? [] : [pid, ...descendants(pid)]
      if (loss === 'machine') signal(daemon!.pid, 'SIGKILL')
      for (const one of all) signal(one, 'SIGKILL')
      if (loss === 'server') return
      await daemon!.ended
      await daemon!.stop()
      daemon = undefined
    },
    stop: async () => await daemon?.stop(),
  }
}

/** Returns the first process of the server on the files. */
function pidOf(data: string): number | undefined {
  const file = join(data, 'postmaster.pid')
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n', 1)[0]) : undefined
}

function configuration({
  folder,
  name,
  data,
  port,
  rest,
  etcd,
}: Record<'folder' | 'name' | 'data', string> & Record<'port' | 'rest' | 'etcd', number>): object {
  const user = { username: OWNER }
  return {
    scope: 'sallyport',
    name,
    restapi: { listen: `${HOST}:${rest}`, connect_address: `${HOST}:${rest}` },
    etcd3: { host: `${HOST}:${etcd}` },
    bootstrap: {
      dcs: {
        ttl: TTL_S,
        loop_wait: LOOP_S,
        retry_timeout: RETRY_S,
        // A server that has crashed is no longer waited for.
        primary_start_timeout: 0,
        synchronous_mode: true,
        postgresql: { use_pg_rewind: true, parameters: { wal_log_hints: 'on' } },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, { auth: 'trust' }, { username: OWNER }],
    },
    postgresql: {
      listen: `${HOST}:${port}`,
      connect_address: `${HOST}:${port}`,
      data_dir: data,
      bin_dir: dirname(realpathSync(findProgram('postgres'))),
      pgpass: join(folder, `${name}.pgpass`),
      authentication: { superuser: user, replication: user, rewind: user },
      pg_hba: [`host all,replication ${OWNER} ${HOST}/32 trust`, `local all ${OWNER} trust`],
      parameters: { unix_socket_directories: folder, shared_buffers: '64MB', lc_messages: 'C' },
    },
  }
}

/** haproxy asks each Patroni which server is the primary; connections to another one are ended. */
async function balance(port: number, nodes: readonly Node[]): Promise<Haproxy> {
  const lines = nodes.map(
    ({ name, port: to, rest }) =>
      `server ${name} ${HOST}:${to} check port ${rest} on-marked-down shutdown-sessions`,
  )
  return await startHaproxy(
    [
      'defaults',
      '  mode tcp',
      '  timeout connect 1s',
      '  timeout client 1h',
      '  timeout server 1h',
      'listen postgres',
      `  bind ${HOST}:${port}`,
      '  option httpchk GET /primary',
      '  default-server inter 500ms fall 2 rise 1',
      ...lines.map((line) => `  ${line}`),
      '',
    ].join('\n'),
    [port],
  )
}

const ask = async (rest: number, path: string) => await fetch(`http://${HOST}:${rest}${path}`)

async function isPrimary({ rest }: Node): Promise<true | undefined> {
  const answer = await ask(rest, '/primary').catch(() => undefined)
  return answer?.status === 200 || undefined
}

async function settled(nodes: readonly [Node, Node]): Promise<{ primary: Node; standby: Node }> {
  for (const node of nodes) await node.start()
  return await until(
    'a primary with a synchronous standby',
    async () => {
      for (const [primary, standby] of [nodes, nodes.toReversed()] as [Node, Node][])
        if ((await isPrimary(primary)) && (await isFollowed(primary, standby))) return { primary, standby }
      await sleep(200)
      return undefined
    },
    REJOIN_MS,
  )
}

/** Whether Patroni names the standby as the one to take over, and the primary waits for it at each commit. */
async function isFollowed(primary: Node, standby: Node): Promise<boolean> {
  const answer = await ask(primary.rest, '/cluster').catch(() => undefined)
  if (!answer) return false
  const { members } = (await answer.json()) as { members: { name: string; role: string }[] }
  if (!members.some(({ name, role }) => name === standby.name && role === SYNC_STANDBY)) return false
  const text = "select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'"
  return (await runSql(primary.port, 'postgres', text).catch(() => [])).length > 0
}
