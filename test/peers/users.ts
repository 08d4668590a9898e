/**
 * Throw-away system users to log in as, created by root with useradd and removed by `remove`. Their names
 * have the pid of their creator, so that the next run removes those of a killed one.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { run } from './process.ts'

const PREFIX = 'spt'
const PROMPT = 'peer$ '
const ATTEMPTS = 10

export interface SystemUser {
  name: string
  password: string
  /** The home folder, owned by the user. */
  home: string
  uid: number
  /** The interactive shell's prompt: `peer$ `. */
  prompt: string
  remove(): Promise<void>
}

/** Whether this process may create users. */
export function canCreateUsers(): boolean {
  return process.getuid?.() === 0
}

/**
 * useradd and userdel fail at once while another process locks the password file: exit code 1 (or 10, group).
 */
async function retry(command: string, args: string[], input?: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const done = await run(command, args, input === undefined ? {} : { input })
    if (done.code === 0) return
    if (attempt === ATTEMPTS) throw new Error(`${command} ${args.join(' ')}: ${done.stderr}`)
    await sleep(100 * attempt)
  }
}

/** Whether a process has this pid. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Ends a user's remaining programs: those that outlive their session would slow down every later test. */
function endProcessesOf(uid: number): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (statSync(`/proc/${pid}`).uid === uid) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // The process has ended meanwhile.
    }
  }
}

/** Unmounts file systems in a home folder, such as xrdp's, which would prevent its removal. */
function unmountBelow(home: string): void {
  const points = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  for (const point of points.map((line) => line.split(' ')[1] ?? '')) {
    if (point.startsWith(`${home}/`)) spawnSync('umount', ['--lazy', point])
  }
}

let swept = false

/** Removes users whose test run has ended without removing them. */
function sweep(): void {
  if (swept) return
  swept = true
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const name = line.split(':')[0] ?? ''
    const match = new RegExp(`^${PREFIX}(\\d+)x[0-9a-f]+$`).exec(name)
    if (!match || isAlive(Number(match[1]))) continue
    unmountBelow(`/home/${name}`)
    spawnSync('userdel', ['-r', '-f', name], { stdio: 'ignore' })
  }
}

/** Creates a user with a home folder, bash and a random password. Needs root. */
export async function createSystemUser(
  options: { password?: string; shell?: string } = {},
): Promise<SystemUser> {
  if (!canCreateUsers()) throw new Error('only root can make system users for a test')
  sweep()
  const name = `${PREFIX}${process.pid}x${randomBytes(3).toString('hex')}`
  const password = options.password ?? randomBytes(12).toString('base64url')
  const shell = options.shell ?? '/bin/bash'
  await retry('useradd', ['--create-home', '--skel', '/nonexistent', '--shell', shell, name])
  const home = `/home/${name}`
  const remove = async (): Promise<void> => {
    process.off('exit', atExit)
    endProcessesOf(uid)
    unmountBelow(home)
    await retry('userdel', ['--remove', '--force', name])
  }
  const atExit = (): void => {
    endProcessesOf(uid)
    unmountBelow(home)
    spawnSync('userdel', ['--remove', '--force', name], { stdio: 'ignore' })
  }
  const uid = Number((await run('id', ['-u', name])).stdout)
  process.on('exit', atExit)
  // The few rounds save the target's sign-ins a tenth of a second each.
  await retry('chpasswd', ['--crypt-method', 'SHA256', '--sha-rounds', '1000'], `${name}:${password}\n`)
  for (const file of ['.bashrc', '.bash_profile']) {
    writeFileSync(join(home, file), `PS1='${PROMPT}'\nunset HISTFILE PROMPT_COMMAND\n`)
    chmodSync(join(home, file), 0o644)
  }
  return { name, password, home, uid, prompt: PROMPT, remove }
}
