/** Starts programs for tests: runs one to its end, or watches a daemon; always ends it by its own pid. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const DEFAULT_TIMEOUT_MS = 60_000
/** Ends what hangs, before the test's own limit does: a starved machine needs a minute for some programs. */
const READY_TIMEOUT_MS = 240_000
const STOP_GRACE_MS = 3_000
const TICKS_PER_SECOND = 100
const QUIET_MS = 300
const QUIET_TIMEOUT_MS = 60_000
const LOWEST_PORT = 10_000
/** Linux's default, for systems that reserve nearly all ports for outgoing connections. */
const DEFAULT_LOWEST_EPHEMERAL_PORT = 32_768
/** Environment variable of the folder in which the processes of a test run claim ports, one file each. */
export const PORT_CLAIMS = 'SALLYPORT_TEST_PORT_CLAIMS'

export interface RunOptions {
  env?: NodeJS.ProcessEnv
  cwd?: string
  /** Written to stdin, which is then closed; without it stdin is empty. */
  input?: string | Uint8Array
  /** Milliseconds until the program is killed and `run` rejects. */
  timeout?: number
  /** Called with each piece of stdout as it comes. */
  onOutput?: (data: Buffer) => void
}

export interface RunResult {
  /** Exit code, or null if a signal ended the program. */
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  /** stdout as raw bytes, for output that is not text. */
  bytes: Buffer
}

/** Runs a program to its end. Rejects if it cannot be started, or exceeds the timeout. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const timeout = options.timeout ?? DEFAULT_TIMEOUT_MS
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      ...(options.env ? { env: options.env } : {}),
      ...(options.cwd ? { cwd: options.cwd } : {}),
      stdio: 'pipe',
    })
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout.on('data', (data: Buffer) => {
      out.push(data)
      options.onOutput?.(data)
    })
    child.stderr.on('data', (data: Buffer) => err.push(data))
    child.stdin.on('error', () => {})
    child.stdin.end(options.input)
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill('SIGKILL')
    }, timeout)
    child.on('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      const bytes = Buffer.concat(out)
      const stderr = Buffer.concat(err).toString()
      if (late) {
        reject(new Error(`${command} ran longer than ${timeout} ms\nstdout: ${bytes}\nstderr: ${stderr}`))
        return
      }
      resolve({ code, signal, stdout: bytes.toString(), stderr, bytes })
    })
  })
}

/**
 * Returns a free TCP port of 127.0.0.1 that no other test of this run gets. It is below the ports that the
 * kernel uses for outgoing connections and for listeners on port 0, so that none of those binds it before the
 * program does.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST_PORT, lowestEphemeralPort())
    if (claimPort(port) && (await canListen(port))) return port
  }
}

/** Whether this process is the first of the run to claim the port. */
function claimPort(port: number): boolean {
  if (given.has(port)) return false
  given.add(port)
  const claims = process.env[PORT_CLAIMS]
  if (claims === undefined) return true
  try {
    closeSync(openSync(join(claims, String(port)), 'wx'))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function lowestEphemeralPort(): number {
  const lowest = Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10)
  return lowest > LOWEST_PORT + 1_000 ? lowest : DEFAULT_LOWEST_EPHEMERAL_PORT
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** Whether a program accepts connections there. */
export function isListening(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host })
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

/** Ports that this process has already claimed. */
const given = new Set<number>()

/** A running program whose output is collected. */
export interface Daemon {
  pid: number
  /** Returns stdout and stderr so far. */
  log(): string
  /** Ends it and its children: SIGTERM, after `grace` (three seconds) SIGKILL. */
  stop(): Promise<void>
  /** Resolves to its exit code, or null if a signal ended it. */
  ended: Promise<number | null>
}

/** Returns the user and system time of a process. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // proc(5): utime and stime are fields 14 and 15; the state, first here, is field 3.
  return fields.slice(11, 13).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND
}

/** Waits until the process is idle: it uses no more than a tick of processor time for a while. */
export async function quiet(pid: number): Promise<void> {
  const deadline = Date.now() + QUIET_TIMEOUT_MS
  let last = cpuSeconds(pid)
  for (;;) {
    await sleep(QUIET_MS)
    const now = cpuSeconds(pid)
    if (now - last <= 1 / TICKS_PER_SECOND || Date.now() > deadline) return
    last = now
  }
}

/** Returns the pids of a process's descendants, from /proc. */
export function descendants(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
      children.set(parent, [...(children.get(parent) ?? []), Number(name)])
    } catch {
      // The process ended between the listing and the reading.
    }
  }
  const found: number[] = []
  for (const queue = [pid]; queue.length > 0; ) {
    const next = children.get(queue.pop()!) ?? []
    found.push(...next)
    queue.push(...next)
  }
  return found
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has already ended.
  }
}

/**
 * Starts a program and waits until its output matches `ready` (or, for a function, until that returns true).
 * Rejects with its output if it ends before, or is not ready after much longer than any takes.
 */
export async function startDaemon(
  command: string,
  args: readonly string[],
  ready: RegExp | (() => boolean | Promise<boolean>),
  options: { env?: NodeJS.ProcessEnv; cwd?: string; grace?: number } = {},
): Promise<Daemon> {
  const child: ChildProcess = spawn(command, args, {
    ...(options.env ? { env: options.env } : {}),
    ...(options.cwd ? { cwd: options.cwd } : {}),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const keep = (data: Buffer): void => {
    output += data
  }
  child.stdout?.on('data', keep)
  child.stderr?.on('data', keep)
  let failure: Error | undefined
  let over = false
  const ended = new Promise<number | null>((resolve) => {
    child.on('error', (error) => {
      failure = error
      over = true
      resolve(null)
    })
    child.on('exit', (code) => {
      over = true
      resolve(code)
    })
  })
  const atExit = (): void => kill(child.pid ?? 0, 'SIGKILL')
  if (child.pid !== undefined) process.on('exit', atExit)

  const stop = async (): Promise<void> => {
    process.off('exit', atExit)
    if (child.pid === undefined || over) return
    const below = descendants(child.pid)
    kill(child.pid, 'SIGTERM')
    await Promise.race([ended, sleep(options.grace ?? STOP_GRACE_MS, undefined, { ref: false })])
    for (const pid of [child.pid, ...below]) kill(pid, 'SIGKILL')
    await ended
  }

  const deadline = Date.now() + READY_TIMEOUT_MS
  for (;;) {
    if (failure) throw failure
    if (ready instanceof RegExp ? ready.test(output) : await ready()) break
    if (over) throw new Error(`${command} ended before it was ready: ${output}`)
    if (Date.now() > deadline) {
      await stop()
      throw new Error(`${command} was not ready in time: ${output}`)
    }
    await sleep(20)
  }
  return { pid: child.pid ?? 0, log: () => output, stop, ended }
}
