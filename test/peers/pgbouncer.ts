/** Debian's PgBouncer before a server, in transaction mode. */
import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Postgres } from './postgres.ts'
import { freePort, startDaemon } from './process.ts'
import { findProgram } from './program.ts'
import { OWNER } from './sql.ts'

export interface PgBouncer {
  port: number
  stop(): Promise<void>
}

/** `ignored`: parameters of clients that it takes and drops. It refuses to run as root. */
export async function startPgBouncer(server: Postgres, ignored: readonly string[]): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-pgbouncer-'))
  const port = await freePort()
  const users = join(folder, 'users.txt')
  writeFileSync(users, `"${OWNER}" ""\n`)
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: users,
    pool_mode: 'transaction',
    ignore_startup_parameters: ignored.join(', '),
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]\n* = host=127.0.0.1 port=${server.port}\n[pgbouncer]\n${lines.join('\n')}\n`,
  )
  const asUser: string[] = []
  if (process.getuid?.() === 0) {
    const { uid, gid } = statSync(server.folder)
    for (const one of [folder, users, file]) chownSync(one, uid, gid)
    asUser.push('setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups')
  }
  const [program, ...args] = [...asUser, findProgram('pgbouncer'), file]
  const daemon = await startDaemon(program!, args, /process up/)
  return {
    port,
    async stop() {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
