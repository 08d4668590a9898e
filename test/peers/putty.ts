/** PuTTY's command-line clients (plink, pscp, psftp) and dropbear's (dbclient). */
import { join } from 'node:path'
import { type Home, type Login, writeHomeFile } from './home.ts'
import { type Daemon, type RunOptions, type RunResult, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'
import { openTerminal, type Terminal, type TerminalOptions } from './terminal.ts'

const HOST = '127.0.0.1'

/** Converts a key: PuTTY reads its own format only. */
async function puttyKey(home: Home, identity: string): Promise<string> {
  const path = join(home.folder, 'key.ppk')
  const args = [identity, '-O', 'private', '-o', path]
  const done = await run(findProgram('puttygen'), args, { env: home.env() })
  if (done.code !== 0) throw new Error(`puttygen: ${done.stderr}`)
  return path
}

async function puttyArguments(home: Home, login: Login): Promise<string[]> {
  const args = ['-batch', '-P', String(login.port), '-l', login.user]
  if (login.hostFingerprint !== undefined) args.push('-hostkey', login.hostFingerprint)
  if (login.identity !== undefined) args.push('-i', await puttyKey(home, login.identity))
  if (login.password !== undefined) args.push('-pw', login.password)
  return args
}

/** Runs `plink FLAGS HOST COMMAND`. */
export async function plink(
  home: Home,
  login: Login,
  command: string,
  options: RunOptions & { flags?: string[] } = {},
): Promise<RunResult> {
  const args = ['-ssh', ...(options.flags ?? []), ...(await puttyArguments(home, login)), HOST, command]
  return run(findProgram('plink'), args, { ...options, env: { ...home.env(), ...options.env } })
}

/** Starts `plink -N FLAGS`, ready when `ready` returns true. */
export async function plinkForwarding(
  home: Home,
  login: Login,
  flags: string[],
  ready: () => boolean | Promise<boolean>,
): Promise<Daemon> {
  const args = ['-ssh', '-N', ...flags, ...(await puttyArguments(home, login)), HOST]
  return startDaemon(findProgram('plink'), args, ready, { env: home.env() })
}

/** Starts `dbclient -N FLAGS`, ready when `ready` returns true. */
export function dbclientForwarding(
  home: Home,
  login: Login,
  flags: string[],
  ready: () => boolean | Promise<boolean>,
): Promise<Daemon> {
  const args = ['-N', '-y', '-y', ...flags, '-p', String(login.port), '-l', login.user, HOST]
  const env = { ...home.env(), DROPBEAR_PASSWORD: login.password ?? '' }
  return startDaemon(findProgram('dbclient'), args, ready, { env })
}

/** Runs plink with a shell on a terminal. */
export async function plinkTerminal(
  home: Home,
  login: Login,
  options: TerminalOptions = {},
): Promise<Terminal> {
  const args = ['-ssh', '-t', ...(await puttyArguments(home, login)), HOST]
  return openTerminal(findProgram('plink'), args, { ...options, env: home.env() })
}

/** Runs pscp by SFTP (its default) or by the old protocol; the remote side is written `:path`. */
export async function pscp(
  home: Home,
  login: Login,
  from: string,
  to: string,
  protocol: 'sftp' | 'scp' = 'sftp',
  flags: string[] = [],
): Promise<RunResult> {
  const place = (path: string): string => (path.startsWith(':') ? `${HOST}${path}` : path)
  const args = [
    `-${protocol}`,
    '-q',
    ...flags,
    ...(await puttyArguments(home, login)),
    place(from),
    place(to),
  ]
  return run(findProgram('pscp'), args, { env: home.env() })
}

/** Runs `psftp -b`. */
export async function psftp(home: Home, login: Login, commands: string[]): Promise<RunResult> {
  const script = writeHomeFile(home, 'psftp.script', `${commands.join('\n')}\nquit\n`)
  const args = [...(await puttyArguments(home, login)), '-b', script, HOST]
  return run(findProgram('psftp'), args, { env: home.env() })
}

/** Runs `dbclient FLAGS HOST COMMAND`, by password; it accepts any host key. */
export function dbclient(
  home: Home,
  login: Login,
  command: string,
  options: RunOptions & { flags?: string[] } = {},
): Promise<RunResult> {
  const args = [
    ...(options.flags ?? []),
    '-y',
    '-y',
    '-p',
    String(login.port),
    '-l',
    login.user,
    HOST,
    command,
  ]
  const env = { ...home.env(), ...options.env, DROPBEAR_PASSWORD: login.password ?? '' }
  return run(findProgram('dbclient'), args, { ...options, env })
}
