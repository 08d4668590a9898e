/** Debian's MariaDB on 127.0.0.1, in a folder of its own. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection, type RowDataPacket } from 'mysql2'
import { freePort, isListening, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'
import type { CertificateFiles } from './vnc/certificate.ts'

const SHARED = '/usr/share/mysql'
/** The tables of the server itself, in this order (mariadb-install-db). */
const SYSTEM_TABLES = [
  'mysql_system_tables.sql',
  'mysql_performance_tables.sql',
  'mysql_system_tables_data.sql',
]

export interface Mariadb {
  port: number
  pid: number
  /** Runs statements as its administrator. */
  sql(...statements: string[]): Promise<RowDataPacket[]>
  stop(): Promise<void>
}

export const MARIADB_ADMIN = { login: 'owner', password: 'Owner-Pass1' }

/** Makes and starts a server, as the user that runs the tests. */
export async function startMariadb({ cert, key }: CertificateFiles): Promise<Mariadb> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-mariadb-'))
  const data = join(folder, 'data')
  mkdirSync(data)
  const port = await freePort()
  const program = findProgram('mariadbd')
  const common = [
    '--no-defaults',
    `--datadir=${data}`,
    `--tmpdir=${folder}`,
    `--lc-messages-dir=${SHARED}`,
    `--socket=${folder}/socket`,
    '--innodb-buffer-pool-size=8M',
    '--innodb-log-file-size=4M',
    '--innodb-flush-log-at-trx-commit=0',
    ...(process.getuid?.() === 0 ? ['--user=root'] : []),
  ]
  const tables = SYSTEM_TABLES.map((name) => readFileSync(join(SHARED, name), 'utf8'))
  const made = await run(program, [...common, '--bootstrap', '--skip-log-bin'], {
    input: ['create database mysql;', 'use mysql;', ...tables].join('\n'),
  })
  if (made.code !== 0) throw new Error(made.stderr)
  const init = join(folder, 'init.sql')
  writeFileSync(
    init,
    `create user '${MARIADB_ADMIN.login}'@'%' identified by '${MARIADB_ADMIN.password}';\n` +
      `grant all on *.* to '${MARIADB_ADMIN.login}'@'%' with grant option;\n`,
  )
  const daemon = await startDaemon(
    program,
    [
      ...common,
      ...[`--port=${port}`, '--bind-address=127.0.0.1', '--skip-name-resolve', `--init-file=${init}`],
      ...[`--ssl-cert=${cert}`, `--ssl-key=${key}`],
    ],
    () => isListening(port),
  )
  return {
    port,
    pid: daemon.pid,
    sql: (...statements) => asOwner(port, statements),
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Returns the rows of the last statement. */
async function asOwner(port: number, statements: readonly string[]): Promise<RowDataPacket[]> {
  const { login: user, password } = MARIADB_ADMIN
  const client = createConnection({ host: '127.0.0.1', port, user, password })
  try {
    let last: RowDataPacket[] = []
    for (const statement of statements) {
      last = await new Promise<RowDataPacket[]>((resolve, reject) => {
        client.query<RowDataPacket[]>(statement, (error, rows) => (error ? reject(error) : resolve(rows)))
      })
    }
    return last
  } finally {
    client.destroy()
  }
}
