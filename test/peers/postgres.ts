/**
 * Debian's PostgreSQL on 127.0.0.1, in a folder of its own. It refuses to run as root: root's tests start it as
 * the package's user.
 */
import { chownSync, existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../until.ts'
import { descendants, freePort, run, startDaemon } from './process.ts'
import { findProgram, type ProgramName } from './program.ts'
import { OWNER, runSql } from './sql.ts'

/** The package's user. */
const SYSTEM_USER = 'postgres'

/** Quick, and safe only against the end of the server, not of the machine. */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '300',
  shared_buffers: '64MB',
  unix_socket_directories: '',
  listen_addresses: '127.0.0.1',
  lc_messages: 'C',
  // A test makes and drops databases by the hundred, with little in each.
  autovacuum: 'off',
  max_wal_size: '1GB',
  jit: 'off',
}

/** A disk in memory, on which a database is made in half the time, and its least free bytes. */
const MEMORY = { folder: '/dev/shm', free: 4 * 2 ** 30 }

function placeForServers(): string {
  if (!existsSync(MEMORY.folder)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY.folder)
  return bavail * bsize < MEMORY.free ? tmpdir() : MEMORY.folder
}

export interface Postgres {
  port: number
  /** The server's process, the first one of it. */
  readonly pid: number
  /** Folder of the server's files. */
  folder: string
  /** Returns the URL of one of its databases, for `user`. */
  url(database: string, user?: string): string
  /** Runs statements in the database, or in `postgres`. Returns the rows of the last one. */
  sql(text: string, database?: string): Promise<Record<string, unknown>[]>
  log(): string
  /** Copies it to a second server, which follows it as a hot standby. */
  standby(): Promise<Standby>
  /** Kills all its processes, as a power cut would. */
  kill(): Promise<void>
  /** Starts it again after `kill`, on the same port and files. */
  start(): Promise<void>
  /** Halts all its processes: connections stay, and get no answer. */
  freeze(): void
  thaw(): void
  stop(): Promise<void>
}

export interface Standby extends Postgres {
  /** Makes it the primary. */
  promote(): Promise<void>
}

/** Makes and starts a server; `settings` go over those of tests. */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<Postgres> {
  const folder = mkdtempSync(join(placeForServers(), 'sallyport-postgres-'))
  try {
    return await startIn(folder, settings)
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

async function startIn(folder: string, settings: Readonly<Record<string, string>>): Promise<Postgres> {
  const data = join(folder, 'data')
  await asOwner(folder, 'initdb', [
    ...['-D', data, '-U', OWNER, '-E', 'UTF8', '--locale=C.UTF-8', '--auth=trust', '--no-sync'],
  ])
  writeFileSync(
    join(data, 'pg_hba.conf'),
    `host all,replication ${OWNER} 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n`,
  )
  return serve(folder, settings)
}

/** Starts a server on the files of the folder. */
async function serve(folder: string, settings: Readonly<Record<string, string>>): Promise<Postgres> {
  const data = join(folder, 'data')
  const port = await freePort()
  const options = Object.entries({ ...SETTINGS, ...settings, port: String(port) })
  const prefix = await asOrdinaryUser(folder)
  const start = () =>
    startDaemon(
      ...withPrefix(prefix, findProgram('postgres'), [
        ...['-D', data],
        ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ]),
      /database system is ready to accept (read-only )?connections/,
      { cwd: '/' },
    )
  let daemon = await start()
  let halted: number[] = []
  const thaw = () => {
    for (const pid of halted) signal(pid, 'SIGCONT')
    halted = []
  }
  const url = (database: string, user = OWNER) =>
    `postgres://${user}@127.0.0.1:${port}/${database}?sslmode=disable`
  return {
    port,
    get pid() {
      return daemon.pid
    },
    folder: data,
    url,
    log: () => daemon.log(),
    sql: (text, database = 'postgres') => runSql(port, database, text),
    standby: () => startStandby(port, settings),
    async kill() {
      const all = [daemon.pid, ...descendants(daemon.pid)]
      for (const pid of all) signal(pid, 'SIGKILL')
      await daemon.ended
      await daemon.stop()
      halted = []
      // The next one looks for processes of this one.
      await until('the end of its processes', () => all.every((pid) => !existsSync(`/proc/${pid}`)))
    },
    async start() {
      daemon = await start()
    },
    freeze() {
      // The first one first: it starts no others then.
      for (const pid of [daemon.pid, ...descendants(daemon.pid)]) {
        signal(pid, 'SIGSTOP')
        halted.push(pid)
      }
      for (const pid of descendants(daemon.pid).filter((one) => !halted.includes(one))) {
        signal(pid, 'SIGSTOP')
        halted.push(pid)
      }
    },
    thaw,
    async stop() {
      thaw()
      // SIGTERM would wait for its clients.
      signal(daemon.pid, 'SIGINT')
      await daemon.ended
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function startStandby(of: number, settings: Readonly<Record<string, string>>): Promise<Standby> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-standby-'))
  const data = join(folder, 'data')
  await asOwner(folder, 'pg_basebackup', [
    ...[
      '-h',
      '127.0.0.1',
      '-p',
      String(of),
      '-U',
      OWNER,
      '-D',
      data,
      '-R',
      '-X',
      'stream',
      '--checkpoint=fast',
    ],
  ])
  const server = await serve(folder, settings)
  return {
    ...server,
    promote: async () => {
      await server.sql('select pg_promote()')
    },
  }
}

/** Runs one of the server's programs to its end, as the owner of the folder's files. */
async function asOwner(folder: string, program: ProgramName, args: string[]): Promise<void> {
  const prefix = await asOrdinaryUser(folder)
  const done = await run(...withPrefix(prefix, findProgram(program), args), { timeout: 300_000, cwd: '/' })
  if (done.code !== 0) throw new Error(`${program}: ${done.stderr}`)
}

/** Sends a signal to a process, if there is one. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Gives the folder to an ordinary user. Returns the command that runs a program as that user. */
export async function asOrdinaryUser(folder: string): Promise<string[]> {
  if (process.getuid?.() !== 0) return []
  const ids = await run('id', ['-u', SYSTEM_USER])
  if (ids.code !== 0) throw new Error(`no user ${SYSTEM_USER}: install Debian's postgresql-15`)
  const group = await run('id', ['-g', SYSTEM_USER])
  chownSync(folder, Number(ids.stdout), Number(group.stdout))
  return ['setpriv', `--reuid=${SYSTEM_USER}`, `--regid=${SYSTEM_USER}`, '--clear-groups']
}

/** Returns the command line of a program behind another one. */
export function withPrefix([first, ...rest]: string[], program: string, args: string[]): [string, string[]] {
  return first === undefined ? [program, args] : [first, [...rest, program, ...args]]
}
