/**
 * xrdp's session manager, which creates the desktops of every xrdp on this machine: they connect to its one
 * port, whatever their settings. So tests that run at the same time share it, in other processes too, and it
 * ends with the last.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { withLock } from '../../../bin/lock.mjs'
import { until } from '../../until.ts'
import { descendants, isListening } from '../process.ts'
import { findProgram } from '../program.ts'
import { isAlive, type SystemUser } from '../users.ts'
import { copyIni } from './ini.ts'

/** The port in /etc/xrdp/sesman.ini. */
const PORT = 3350
const SOCKETS = '/run/xrdp'
const FOLDER = '/run/sallyport-sesman'
const LOCK = '/run/lock/sallyport-sesman.lock'
const HOLDERS = join(FOLDER, 'holders')
const [PID, LOG] = [join(FOLDER, 'pid'), join(FOLDER, 'log')]
/** The desktop's program, in the home of a user. */
const PROGRAM = '.desktop'
/** Displays of tests have the lowest free numbers. */
const FIRST_DISPLAY = 200
const MOST_DISPLAYS = 200
const PATIENCE_MS = 20_000

/** Sets a user's desktop, as lines for sh; it ends when they end. By default it is an xterm. */
export function setDesktop(user: SystemUser, program: string): void {
  writeFileSync(join(user.home, PROGRAM), `${program}\n`, { mode: 0o644 })
}

/** Returns the folder in which the drives of a user's client are mounted. */
export const drivesOf = (user: SystemUser): string => join(user.home, 'thinclient_drives')

export interface Sesman {
  log(): string
  release(): Promise<void>
}

const quietly = <T>(work: () => T | Promise<T>): Promise<T> => withLock(LOCK, () => {}, work)

/** Keeps it running at least until `release`, or until this process ends. */
export async function holdSesman(): Promise<Sesman> {
  const holder = join(HOLDERS, `${process.pid}-${randomBytes(4).toString('hex')}`)
  const leave = (): void => {
    rmSync(holder, { force: true })
    if (holders().length === 0) stop()
  }
  const begin = async (): Promise<void> => {
    sweepDisplays()
    if (holders().length === 0) await start()
    writeFileSync(holder, '')
    process.on('exit', leave)
  }
  await quietly(begin)
  return {
    log: () => readFileSync(LOG, 'utf8'),
    release: () =>
      quietly(() => {
        process.off('exit', leave)
        leave()
      }),
  }
}

/** Returns the processes that still need it: files named after their pids. */
function holders(): string[] {
  try {
    return readdirSync(HOLDERS).filter((name) => isAlive(Number(name.split('-')[0])))
  } catch {
    return []
  }
}

/** Removes the remains of killed displays: sesman uses no number with a lock or a socket. */
function sweepDisplays(): void {
  for (let number = FIRST_DISPLAY; number <= FIRST_DISPLAY + MOST_DISPLAYS; number++) {
    const lock = `/tmp/.X${number}-lock`
    try {
      if (isAlive(Number(readFileSync(lock, 'utf8')))) continue
    } catch {
      // The lock does not exist.
    }
    rmSync(lock, { force: true })
    rmSync(`/tmp/.X11-unix/X${number}`, { force: true })
  }
}

/** sesman listens on ::1 although its setting is 127.0.0.1. */
const isTaken = async (): Promise<boolean> => (await isListening(PORT)) || (await isListening(PORT, '::1'))

async function start(): Promise<void> {
  stop()
  await until(
    `port ${PORT}, which a session manager has that no test has started`,
    async () => !(await isTaken()) || undefined,
    PATIENCE_MS,
  )
  mkdirSync(HOLDERS, { recursive: true })
  const [ini, desktop] = [join(FOLDER, 'sesman.ini'), join(FOLDER, 'desktop.sh')]
  writeFileSync(
    desktop,
    `#!/bin/sh\n[ -e "$HOME/${PROGRAM}" ] && exec /bin/sh "$HOME/${PROGRAM}"\nexec xterm -geometry 80x24+0+0 -e sh\n`,
  )
  chmodSync(desktop, 0o755)
  copyIni('/etc/xrdp/sesman.ini', ini, {
    DefaultWindowManager: desktop,
    EnableUserWindowManager: 'false',
    KillDisconnected: 'true',
    X11DisplayOffset: `${FIRST_DISPLAY}`,
    MaxSessions: `${MOST_DISPLAYS}`,
    LogFile: LOG,
    EnableSyslog: 'false',
  })
  // sesman recreates the folder, with the permissions that sessions need.
  rmSync(SOCKETS, { recursive: true, force: true })
  const output = openSync(join(FOLDER, 'output'), 'w')
  // sesman may outlive this process, if another one still needs it.
  const child = spawn(findProgram('xrdp-sesman'), ['-n', '-c', ini], {
    detached: true,
    stdio: ['ignore', output, output],
  })
  closeSync(output)
  child.unref()
  let failure: Error | undefined
  child.on('error', (error) => {
    failure = error
  })
  await until('xrdp-sesman', async () => {
    if (failure) throw failure
    return (await isTaken()) || undefined
  })
  writeFileSync(PID, `${child.pid}`)
}

/** Ends the one with the known pid, with its desktops. */
function stop(): void {
  let pid: number
  try {
    pid = Number(readFileSync(PID, 'utf8'))
    if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(FOLDER)) pid = 0
  } catch {
    pid = 0
  }
  if (pid > 1) {
    for (const one of [pid, ...descendants(pid)]) {
      try {
        process.kill(one, 'SIGKILL')
      } catch {
        // The process has already ended.
      }
    }
  }
  rmSync(FOLDER, { recursive: true, force: true })
}
