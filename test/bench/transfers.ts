/** Transfers of a file over an open connection, and what each costs in processor time. */
import { rmSync, statSync } from 'node:fs'
import { type Input, type Master, timed } from './clients.ts'
import { between, endedChildren, ProcessTree, type Spent } from './processor.ts'
import type { Lab, Route } from './routes.ts'

export const GIB = 1024 * 1024 * 1024

interface Way {
  /** Arguments before the host, if the program is not ssh. */
  command: (master: Master, file: string, copy: string) => [string, string[], Input?]
  /** Whether `copy` is there afterwards, as long as the file. */
  makesCopy: boolean
  /** The bytes are recorded, not operations and hashes only. */
  isStream: boolean
}

const ssh = (master: Master, command: string, ...more: string[]): [string, string[]] => [
  'ssh',
  [...master.options, ...more, master.host, command],
]

const sftp = (master: Master, text: string): [string, string[], Input] => [
  'sftp',
  ['-q', '-b', '-', ...master.options, master.host],
  { text: `${text}\n` },
]

const WAYS = {
  cat: { command: (master, file) => ssh(master, `cat ${file}`), makesCopy: false, isStream: true },
  'cat-up': {
    command: (master, file) => [...ssh(master, 'cat > /dev/null'), { file }],
    makesCopy: false,
    isStream: true,
  },
  terminal: {
    // The terminal changes no byte, and ssh sends no end of its input while the pipe is open.
    command: (master, file) => [...ssh(master, `stty raw -echo; cat ${file}`, '-tt'), { isHeld: true }],
    makesCopy: false,
    isStream: true,
  },
  'scp-down': {
    command: (master, file, copy) => ['scp', ['-q', ...master.options, `${master.host}:${file}`, copy]],
    makesCopy: true,
    isStream: false,
  },
  'scp-up': {
    command: (master, file, copy) => ['scp', ['-q', ...master.options, file, `${master.host}:${copy}`]],
    makesCopy: true,
    isStream: false,
  },
  'sftp-get': {
    command: (master, file, copy) => sftp(master, `get ${file} ${copy}`),
    makesCopy: true,
    isStream: false,
  },
  'sftp-put': {
    command: (master, file, copy) => sftp(master, `put ${file} ${copy}`),
    makesCopy: true,
    isStream: false,
  },
} satisfies Record<string, Way>

export type Transfer = keyof typeof WAYS
export const TRANSFERS = Object.keys(WAYS) as Transfer[]

/** Whether the route differs for this transfer from the others: quotas bound streams only. */
export function isMeasured(transfer: Transfer, route: Route): boolean {
  if (route === 'whole') return WAYS[transfer].isStream
  // A terminal's quota is above the usual size, so that it is recorded whole.
  if (transfer === 'terminal') return route !== 'hashed' && route !== 'counted'
  return route !== 'counted' || WAYS[transfer].isStream
}

export interface Cost {
  seconds: number
  /** Seconds of processor time. */
  client: number
  target: number
  jump: number
  broker: Spent
}

/** Transfers the file once; checks that all of it has arrived. */
export async function transfer(
  lab: Lab,
  master: Master,
  what: Transfer,
  file: string,
  copy: string,
): Promise<Cost> {
  const way: Way = WAYS[what]
  const client = new ProcessTree(master.pid)
  const read = () => ({
    client: client.spent().all + endedChildren(),
    target: lab.target.spent().all,
    jump: lab.jump.spent().all,
    broker: lab.broker.spent(),
  })
  const before = read()
  const seconds = await timed(...way.command(master, file, copy))
  await Promise.all([lab.broker.quiet(), lab.target.quiet()])
  const after = read()
  if (way.makesCopy) {
    const { size } = statSync(copy)
    rmSync(copy)
    if (size !== statSync(file).size) throw new Error(`${what} over ${master.host}: the copy is short`)
  }
  return {
    seconds,
    client: after.client - before.client,
    target: after.target - before.target,
    jump: after.jump - before.jump,
    broker: between(before.broker, after.broker),
  }
}
