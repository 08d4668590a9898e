/** OpenSSH's clients, and programs that start its ssh: rsync, lftp, sshfs, git. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Home, Login } from './home.ts'
import { writeHomeFile } from './home.ts'
import { type RunOptions, type RunResult, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'
import { openTerminal, type Terminal, type TerminalOptions } from './terminal.ts'

const HOST = '127.0.0.1'

/** Returns the options that ssh, scp and sftp share, without the port (`-p` for ssh, `-P` for the others). */
function commonOptions(home: Home, login: Login): string[] {
  const options = ['-F', home.sshConfig, ...(login.options ?? []).flatMap((option) => ['-o', option])]
  if (login.identity !== undefined) {
    return [...options, '-i', login.identity, '-o', 'PreferredAuthentications=publickey']
  }
  const methods = login.method ?? 'password,keyboard-interactive'
  return [...options, '-o', `PreferredAuthentications=${methods}`, '-o', 'IdentityFile=none']
}

/** Returns ssh's arguments up to and with the host. */
export function sshArguments(home: Home, login: Login): string[] {
  return [...commonOptions(home, login), '-p', String(login.port), '-l', login.user, HOST]
}

/** Runs `ssh HOST COMMAND`, without a terminal. `flags` come first, such as `-T` or `-s`. */
export function ssh(
  home: Home,
  login: Login,
  command: string[],
  options: RunOptions & { flags?: string[] } = {},
): Promise<RunResult> {
  const args = [...(options.flags ?? []), ...sshArguments(home, login), ...command]
  return run(findProgram('ssh'), args, { ...options, env: { ...home.env(login.password), ...options.env } })
}

/**
 * Runs ssh on a terminal. With `typed` the test answers the password prompt itself
 * (`terminal.expect('assword')`); else askpass does.
 */
export function sshTerminal(
  home: Home,
  login: Login,
  command: string[] = [],
  options: TerminalOptions & { flags?: string[]; typed?: boolean } = {},
): Terminal {
  const args = [...(options.flags ?? ['-tt']), ...sshArguments(home, login), ...command]
  const env = { ...home.env(options.typed ? undefined : login.password), ...options.env }
  return openTerminal(findProgram('ssh'), args, { ...options, env })
}

/** Runs `sftp -b`: it stops at the first command that fails (a `-` before a command lets it fail). */
export function sftp(
  home: Home,
  login: Login,
  commands: string[],
  options: RunOptions = {},
): Promise<RunResult> {
  // -b turns BatchMode on, which would prevent the password prompt.
  const args = [...commonOptions(home, login), '-o', 'BatchMode=no', '-o', `User="${login.user}"`]
  args.push('-P', String(login.port), '-b', '-', HOST)
  const input = `${commands.join('\n')}\n`
  const env = { ...home.env(login.password), ...options.env }
  return run(findProgram('sftp'), args, { ...options, env, input })
}

/** A remote file, for `scp` and `rsync`; a plain string is a local path. */
export interface Remote {
  remote: string
}

/** Runs `scp`; flags such as `-O` (the old protocol), `-r`, `-p`. */
export function scp(
  home: Home,
  login: Login,
  from: string | Remote,
  to: string | Remote,
  flags: string[] = [],
  options: RunOptions = {},
): Promise<RunResult> {
  const args = [
    ...flags,
    ...commonOptions(home, login),
    '-o',
    `User="${login.user}"`,
    '-P',
    String(login.port),
  ]
  args.push(place(from), place(to))
  return run(findProgram('scp'), args, { ...options, env: { ...home.env(login.password), ...options.env } })
}

function place(where: string | Remote): string {
  return typeof where === 'string' ? where : `${HOST}:${where.remote}`
}

/** Returns the ssh command for a program that splits it at blanks, with the user name but not the host. */
function sshCommand(home: Home, login: Login): string {
  const words = sshArguments(home, login).slice(0, -1)
  if (words.some((word) => /[\s'"]/.test(word)))
    throw new Error('rsync cuts its -e at blanks: none may be in it')
  return [findProgram('ssh'), ...words].join(' ')
}

/** Runs `rsync -a` over ssh. */
export function rsync(
  home: Home,
  login: Login,
  from: string | Remote,
  to: string | Remote,
  flags: string[] = ['-a'],
): Promise<RunResult> {
  const args = [...flags, '-e', sshCommand(home, login), place(from), place(to)]
  return run(findProgram('rsync'), args, { env: home.env(login.password) })
}

/** Runs git with ssh as its transport; `args` as for git, the remote as `127.0.0.1:path`. */
export function git(home: Home, login: Login, args: string[], options: RunOptions = {}): Promise<RunResult> {
  const identity = { GIT_AUTHOR_NAME: 'peer', GIT_AUTHOR_EMAIL: 'peer@example.com' }
  const committer = { GIT_COMMITTER_NAME: 'peer', GIT_COMMITTER_EMAIL: 'peer@example.com' }
  const env = {
    ...home.env(login.password),
    ...identity,
    ...committer,
    GIT_SSH_COMMAND: sshCommand(home, login),
  }
  return run(findProgram('git'), args, { ...options, env })
}

/** Runs `lftp -c` over sftp; lftp types the password itself, on the terminal that it gives to ssh. */
export function lftp(home: Home, login: Login, commands: string[]): Promise<RunResult> {
  const words = [...commonOptions(home, login), '-a', '-x'].join(' ')
  const script = [
    'set cmd:fail-exit yes',
    'set net:max-retries 1',
    'set net:timeout 15',
    `set sftp:connect-program "${findProgram('ssh')} ${words}"`,
    `open -u '${login.user}','${login.password ?? ''}' -p ${login.port} sftp://${HOST}`,
    ...commands,
    '',
  ].join('\n')
  return run(findProgram('lftp'), ['-f', writeHomeFile(home, 'lftp.script', script)], { env: home.env() })
}

export interface Mount {
  path: string
  unmount(): Promise<void>
}

/** Mounts a remote folder with sshfs, in the foreground. The user name may not hold a colon. */
export async function sshfs(home: Home, login: Login, remote: string): Promise<Mount> {
  const path = join(home.folder, `mount-${login.port}`)
  mkdirSync(path, { recursive: true })
  const command = [findProgram('ssh'), ...commonOptions(home, login)].join(' ')
  const options = `ssh_command=${command.replaceAll(',', '\\,')},port=${login.port}`
  const args = ['-f', '-o', options, `${login.user}@${HOST}:${remote}`, path]
  const mounted = async (): Promise<boolean> => (await run('mountpoint', ['-q', path])).code === 0
  const daemon = await startDaemon(findProgram('sshfs'), args, mounted, { env: home.env(login.password) })
  return {
    path,
    unmount: async () => {
      await run('umount', [path])
      await daemon.stop()
    },
  }
}
