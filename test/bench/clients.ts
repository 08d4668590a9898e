/** OpenSSH's clients, run to their end or kept open. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Cipher, hostOf, type Lab, type Route } from './routes.ts'

const CONNECT_TIMEOUT_MS = 20_000

export interface Input {
  /** A file that the program reads. */
  file?: string
  text?: string
  /** It stays open until the program ends, as a terminal's does. */
  isHeld?: boolean
}

/** Runs a program with its output discarded; resolves to seconds. Rejects if it fails. */
export async function timed(command: string, args: readonly string[], input: Input = {}): Promise<number> {
  // The kernel moves the bytes, not this process.
  const sink = openSync('/dev/null', 'w')
  const source = input.text !== undefined || input.isHeld ? 'pipe' : openSync(input.file ?? '/dev/null', 'r')
  const begin = performance.now()
  try {
    const child = spawn(command, args, { stdio: [source, sink, 'pipe'] })
    if (input.text !== undefined) child.stdin?.end(input.text)
    let errors = ''
    child.stderr?.on('data', (data) => {
      errors += data
    })
    const code = await ended(child)
    if (code !== 0) throw new Error(`${command} ${args.join(' ')}: exit code ${code}: ${errors}`)
    return (performance.now() - begin) / 1000
  } finally {
    closeSync(sink)
    if (source !== 'pipe') closeSync(source)
  }
}

export function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
}

/** A connection that stays open and carries the sessions of other clients (ControlMaster). */
export interface Master {
  pid: number
  /** Options that make ssh, scp and sftp use it; the host is `host`. */
  options: string[]
  host: string
  close(): Promise<void>
}

/** `name`: of its socket; one connection has it at a time. */
export async function openMaster(
  lab: Lab,
  route: Route,
  cipher: Cipher,
  name: string = hostOf(route, cipher),
): Promise<Master> {
  const host = hostOf(route, cipher)
  const socket = join(lab.folder, `${name}.sock`)
  const options = [...lab.options, '-o', `ControlPath=${socket}`]
  const child = spawn('ssh', [...options, '-o', 'ControlMaster=yes', '-N', host], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  // Not shown: it warns of every terminal whose client has none itself.
  let errors = ''
  child.stderr.on('data', (data) => {
    errors += data
  })
  const over = ended(child)
  const deadline = performance.now() + CONNECT_TIMEOUT_MS
  while (!(await isOpen(options, host))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`ssh ${host} has not connected: ${errors}`)
    }
    await sleep(50)
  }
  return {
    pid: child.pid ?? 0,
    options,
    host,
    async close() {
      child.kill('SIGTERM')
      await over
    },
  }
}

async function isOpen(options: readonly string[], host: string): Promise<boolean> {
  const check = spawn('ssh', [...options, '-O', 'check', host], { stdio: 'ignore' })
  return (await ended(check)) === 0
}
