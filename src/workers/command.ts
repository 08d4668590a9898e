/** How a session worker is started, in its cage. */
import { totalmem } from 'node:os'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Cage } from '../confine/cage.ts'
import { confined } from '../confine/command.ts'
import { closedTo } from '../confine/reach.ts'
import { workerCage } from '../confine/worker-cage.ts'
import { HANDLES_DESCRIPTOR, MESSAGES_DESCRIPTOR, WORKER_DESCRIPTORS } from '../contract/worker.ts'
import type { WorkerCommand } from './process.ts'

// The build finds programs by these literals.
const PROGRAM = fileURLToPath(
  new URL(`../../proxies/worker/main${extname(import.meta.url)}`, import.meta.url),
)
const CHANGER = fileURLToPath(
  new URL(`../../proxies/rotation/main${extname(import.meta.url)}`, import.meta.url),
)
const CHANGER_MEMORY = 512 * 1024 ** 2
/** Variables of the broker that a worker keeps: they decide on names, times and allocation, and hold no secret. */
const KEPT = ['TZ', 'LANG', 'LC_ALL', 'RES_OPTIONS', 'MALLOC_ARENA_MAX', 'MALLOC_TRIM_THRESHOLD_'] as const
const LEAST_MEMORY = 1024 ** 3
/** Options of Node that bound the memory of the broker and of its workers alike (bin/lean.mjs). */
const MEMORY_OPTION = /^--(max-semi-space-size=\d+|expose-gc)$/
/** Share of the system's memory that all workers together may take. */
const SHARE = 0.75

/** Returns the bytes that the system, or the container, has. */
function systemMemory(): number {
  const constrained = process.constrainedMemory()
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem()
}

export interface Commanded {
  command: WorkerCommand
  /** Bytes of data that a worker may have. */
  memory: number
  /** Why the workers do not run as a user of their own, although the broker is root. */
  warning?: string
}

/**
 * Returns the command for one of `count` workers; `runAs`: the configured user. Throws an error with the remedy if
 * there is no such user.
 */
export function workerCommand(count: number, runAs: string | undefined): Commanded {
  const env = { NODE_CHANNEL_FD: String(HANDLES_DESCRIPTOR), ...keptVariables() }
  const memory = Math.max(LEAST_MEMORY, Math.floor((systemMemory() * SHARE) / count))
  return commanded({ path: PROGRAM, env, keepOpen: WORKER_DESCRIPTORS, memory }, runAs)
}

/** Returns the command for a process in which secrets are changed at targets, in the cage of a session worker. */
export function changerCommand(runAs: string | undefined): Commanded {
  const keepOpen = [MESSAGES_DESCRIPTOR]
  return commanded({ path: CHANGER, env: keptVariables(), keepOpen, memory: CHANGER_MEMORY }, runAs)
}

function keptVariables(): Record<string, string> {
  return Object.fromEntries(
    KEPT.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  )
}

function commanded(
  {
    path,
    env,
    keepOpen,
    memory,
  }: Pick<Cage, 'keepOpen' | 'memory'> & { path: string; env: Record<string, string> },
  runAs: string | undefined,
): Commanded {
  const cage = workerCage({ runAs, keepOpen, memory })
  const options = process.execArgv.filter((option) => MEMORY_OPTION.test(option))
  const program = { arguments: ['--disable-warning=ExperimentalWarning', ...options, path], env }
  const { uid, gid, ...shared } = cage
  const closed =
    uid === undefined || gid === undefined
      ? undefined
      : closedTo({ uid, gid }, [process.execPath, path, ...cage.readable])
  if (closed === undefined) return { command: confined(program, cage), memory }
  const warning = `session workers run as root without its rights, since the user ${uid} cannot read ${closed}: install the product where others may read, or open that folder (chmod o+x)`
  return { command: confined(program, shared), memory, warning }
}
