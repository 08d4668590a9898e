/**
 * Processor time from /proc: of a program with all its threads, and with all processes that it has started,
 * ended ones too. It is the same on a busy machine, unlike elapsed time.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { descendants } from '../peers/process.ts'

const TICKS_PER_SECOND = 100
const QUIET_MS = 300
const QUIET_TIMEOUT_MS = 120_000

/** Seconds of processor time. */
export interface Spent {
  all: number
  /** By the name of the thread; of a process that the program has started, `2: NAME`. */
  threads: Record<string, number>
}

interface Times {
  name: string
  own: number
  /** Of its children that have ended. */
  children: number
}

/** Reads a `stat` of /proc, or undefined if the process or thread has ended. */
function times(file: string): Times | undefined {
  try {
    const stat = readFileSync(file, 'utf8')
    const end = stat.lastIndexOf(')')
    // proc(5): utime, stime, cutime and cstime are fields 14 to 17; the state, first behind the name, is 3.
    const [user = 0, system = 0, childUser = 0, childSystem = 0] = stat
      .slice(end + 2)
      .split(' ')
      .slice(11, 15)
      .map(Number)
    return {
      name: stat.slice(stat.indexOf('(') + 1, end),
      own: (user + system) / TICKS_PER_SECOND,
      children: (childUser + childSystem) / TICKS_PER_SECOND,
    }
  } catch {
    return undefined
  }
}

/** A process and all that it starts. */
export class ProcessTree {
  readonly root: number
  /** Each process's number, from 1 for the root, in the order in which they are seen. */
  readonly #numbers = new Map<number, number>()

  constructor(root: number) {
    this.root = root
  }

  get pids(): number[] {
    const pids = [this.root, ...descendants(this.root).sort((a, b) => a - b)]
    for (const pid of pids) if (!this.#numbers.has(pid)) this.#numbers.set(pid, this.#numbers.size + 1)
    return pids
  }

  /** Returns the time so far. */
  spent(): Spent {
    const threads: Record<string, number> = {}
    const add = (name: string, seconds: number): void => {
      threads[name] = (threads[name] ?? 0) + seconds
    }
    let all = 0
    for (const pid of this.pids) {
      const process = times(`/proc/${pid}/stat`)
      if (!process) continue
      all += process.own + process.children
      const prefix = pid === this.root ? '' : `${this.#numbers.get(pid)}: `
      let rest = process.own
      for (const thread of threadsOf(pid)) {
        const found = times(`/proc/${pid}/task/${thread}/stat`)
        if (!found) continue
        add(prefix + found.name, found.own)
        rest -= found.own
      }
      add(`${prefix}ended`, Math.max(0, rest) + process.children)
    }
    return { all, threads }
  }

  /** Waits until all of them are idle: together they use no more than a tick for a while. */
  async quiet(): Promise<void> {
    const deadline = performance.now() + QUIET_TIMEOUT_MS
    let last = this.spent().all
    for (;;) {
      await sleep(QUIET_MS)
      const { all } = this.spent()
      if (all - last <= 1.5 / TICKS_PER_SECOND || performance.now() > deadline) return
      last = all
    }
  }

  /** Returns the bytes of each process: of its own, and of files (Node and its libraries), which they share. */
  memory(): { number: number; own: number; files: number }[] {
    return this.pids.map((pid) => ({
      number: this.#numbers.get(pid) ?? 0,
      own: kibibytes(pid, 'RssAnon') + kibibytes(pid, 'RssShmem'),
      files: kibibytes(pid, 'RssFile'),
    }))
  }
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** Returns a value of a process's status in bytes, or 0 if the process has ended. */
function kibibytes(pid: number, key: string): number {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

/** Returns the time between two readings, by threads without those that used none. */
export function between(before: Spent, after: Spent): Spent {
  const threads: Record<string, number> = {}
  for (const [name, seconds] of Object.entries(after.threads)) {
    const used = seconds - (before.threads[name] ?? 0)
    if (used > 0.5 / TICKS_PER_SECOND) threads[name] = used
  }
  return { all: after.all - before.all, threads }
}

/** Returns the time of this program's children that have ended, such as clients that it has run. */
export function endedChildren(): number {
  return times('/proc/self/stat')?.children ?? 0
}
