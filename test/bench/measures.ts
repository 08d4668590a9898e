/** The measurements, each on one route. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lab, Route } from './routes.ts'

const MIB = 1024 * 1024

/** Runs a program with its output discarded; resolves to seconds. Rejects if it fails. */
async function timed(command: string, args: string[], input?: string): Promise<number> {
  const sink = openSync('/dev/null', 'r+')
  const begin = performance.now()
  try {
    // The kernel moves the bytes, not this process.
    const child = spawn(command, args, { stdio: [input === undefined ? 'ignore' : 'pipe', sink, 'pipe'] })
    child.stdin?.end(input)
    let errors = ''
    child.stderr?.on('data', (data) => {
      errors += data
    })
    const code = await ended(child)
    if (code !== 0) throw new Error(`${command} ${args.join(' ')}: exit code ${code}: ${errors}`)
    return (performance.now() - begin) / 1000
  } finally {
    closeSync(sink)
  }
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
}

export const TRANSFERS = ['ssh cat', 'scp down', 'scp up', 'sftp get', 'sftp put'] as const
export type Transfer = (typeof TRANSFERS)[number]

export interface TransferResult {
  mibPerSecond: number
  /** Processor seconds of the broker per GiB. */
  cpuPerGib?: number
}

/** Transfers `file` once, and checks that all of it has arrived. */
export async function transfer(
  lab: Lab,
  route: Route,
  what: Transfer,
  file: string,
): Promise<TransferResult> {
  const size = statSync(file).size
  const copy = join(file, '..', 'copy')
  rmSync(copy, { force: true })
  const before = lab.cpu(route)
  const seconds = await timed(...command(lab, route, what, file, copy))
  if (what !== 'ssh cat' && statSync(copy).size !== size)
    throw new Error(`${what} by ${route}: copy is short`)
  rmSync(copy, { force: true })
  if (before !== undefined) await lab.quiet()
  const after = lab.cpu(route)
  const mibPerSecond = size / MIB / seconds
  if (before === undefined || after === undefined) return { mibPerSecond }
  return { mibPerSecond, cpuPerGib: ((after - before) * 1024 * MIB) / size }
}

function command(
  lab: Lab,
  route: Route,
  what: Transfer,
  file: string,
  copy: string,
): [command: string, args: string[], input?: string] {
  switch (what) {
    case 'ssh cat':
      return ['ssh', [...lab.options, route, `cat ${file}`]]
    case 'scp down':
      return ['scp', ['-q', ...lab.options, `${route}:${file}`, copy]]
    case 'scp up':
      return ['scp', ['-q', ...lab.options, file, `${route}:${copy}`]]
    case 'sftp get':
      return ['sftp', ['-q', '-b', '-', ...lab.options, route], `get ${file} ${copy}\n`]
    case 'sftp put':
      return ['sftp', ['-q', '-b', '-', ...lab.options, route], `put ${file} ${copy}\n`]
  }
}

/** Opens a shell session on a terminal; resolves at its prompt. */
async function openShell(lab: Lab, route: Route): Promise<ChildProcess> {
  const child = spawn('ssh', ['-tt', ...lab.options, route], { stdio: ['pipe', 'pipe', 'inherit'] })
  await waitFor(child, lab.user.prompt)
  return child
}

function waitFor(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let seen = ''
    const look = (data: Buffer): void => {
      seen += data.toString('latin1')
      if (!seen.includes(text)) return
      child.stdout?.off('data', look)
      child.off('close', gone)
      resolve()
    }
    const gone = (): void => reject(new Error(`ssh ended before ${JSON.stringify(text)} came: ${seen}`))
    child.stdout?.on('data', look)
    child.on('close', gone)
  })
}

/**
 * Returns milliseconds from a key to its echo in a shell session, `count` times, with a millisecond between.
 */
export async function echoes(lab: Lab, route: Route, count: number): Promise<number[]> {
  const child = await openShell(lab, route)
  // From here on the terminal itself does not echo; cat sends back its input.
  child.stdin?.write("stty raw -echo; printf 're''ady'; exec cat\r")
  await waitFor(child, 'ready')
  const samples: number[] = []
  for (let round = -50; round < count; round++) {
    const begin = performance.now()
    await new Promise<void>((resolve) => {
      child.stdout?.once('data', () => resolve())
      child.stdin?.write('x')
    })
    // The first rounds warm up.
    if (round >= 0) samples.push(performance.now() - begin)
    await sleep(1)
  }
  child.kill('SIGTERM')
  await ended(child)
  return samples
}

/** Measures like `echoes`, while another session on the same route transfers the file repeatedly. */
export async function echoesUnderLoad(
  lab: Lab,
  route: Route,
  count: number,
  file: string,
): Promise<number[]> {
  const sink = openSync('/dev/null', 'r+')
  const bulk = spawn('ssh', [...lab.options, route, `while cat ${file}; do :; done`], {
    stdio: ['ignore', sink, 'inherit'],
  })
  const over = ended(bulk)
  try {
    await sleep(1000)
    return await echoes(lab, route, count)
  } finally {
    bulk.kill('SIGTERM')
    await over
    closeSync(sink)
  }
}

export interface LoginResult {
  perSecond: number
  /** Processor milliseconds of the broker for each. */
  cpuMs?: number
}

/** Runs `ssh true`, `count` times, six at a time. */
export async function logins(lab: Lab, route: Route, count: number): Promise<LoginResult> {
  const before = lab.cpu(route)
  const begin = performance.now()
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) await timed('ssh', [...lab.options, route, 'true'])
  }
  await Promise.all(Array.from({ length: 6 }, worker))
  const perSecond = (count * 1000) / (performance.now() - begin)
  if (before !== undefined) await lab.quiet()
  const after = lab.cpu(route)
  if (before === undefined || after === undefined) return { perSecond }
  return { perSecond, cpuMs: ((after - before) * 1000) / count }
}

/**
 * Returns the proxy's bytes for each of `count` shells that wait at their prompt, or undefined without a
 * proxy.
 */
export async function memoryPerSession(lab: Lab, route: Route, count: number): Promise<number | undefined> {
  const before = lab.memory(route)
  if (before === undefined) return undefined
  const open: ChildProcess[] = []
  try {
    let left = count
    const worker = async (): Promise<void> => {
      while (left-- > 0) open.push(await openShell(lab, route))
    }
    await Promise.all(Array.from({ length: 4 }, worker))
    await sleep(2000)
    return ((lab.memory(route) ?? before) - before) / count
  } finally {
    const all = open.map((child) => ended(child))
    for (const child of open) child.kill('SIGTERM')
    await Promise.all(all)
  }
}
