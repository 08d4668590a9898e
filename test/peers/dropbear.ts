/** Dropbear's server as a target. It checks passwords against the shadow file itself, so it needs root. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'
import type { SystemUser } from './users.ts'

export interface Dropbear {
  host: '127.0.0.1'
  port: number
  /** `SHA256:…` of its ed25519 host key. */
  fingerprint: string
  log(): string
  stop(): Promise<void>
}

/**
 * Starts `dropbear -F -E` with an ed25519 host key. A user's authorized keys are written into the home
 * folder, the only place where dropbear looks.
 */
export async function startDropbear(
  options: { user?: SystemUser; authorizedKeys?: string[]; port?: number } = {},
): Promise<Dropbear> {
  const program = findProgram('dropbear')
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-dropbear-'))
  const hostKey = join(folder, 'host_key')
  const made = await run(findProgram('dropbearkey'), ['-t', 'ed25519', '-f', hostKey])
  const fingerprint = /SHA256:\S+/.exec(made.stdout)?.[0] ?? ''
  if (options.user && options.authorizedKeys) await authorize(options.user, options.authorizedKeys)
  const port = options.port ?? (await freePort())
  const args = ['-F', '-E', '-p', `127.0.0.1:${port}`, '-r', hostKey, '-P', join(folder, 'pid')]
  const daemon = await startDaemon(program, args, /Not backgrounding/)
  return {
    host: '127.0.0.1',
    port,
    fingerprint,
    log: daemon.log,
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function authorize(user: SystemUser, keys: string[]): Promise<void> {
  const folder = join(user.home, '.ssh')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, 'authorized_keys'), `${keys.join('\n')}\n`, { mode: 0o600 })
  const done = await run('chown', ['-R', `${user.name}:`, folder])
  if (done.code !== 0) throw new Error(done.stderr)
}
