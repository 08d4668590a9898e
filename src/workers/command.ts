/** How a session worker is started. */
import { totalmem } from 'node:os'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HANDLES_DESCRIPTOR } from '../contract/worker.ts'
import type { WorkerCommand } from './process.ts'

const PROGRAM = fileURLToPath(
  new URL(`../../proxies/worker/main${extname(import.meta.url)}`, import.meta.url),
)
/** Variables of the broker that a worker keeps: they decide on names, times and allocation, and hold no secret. */
const KEPT = ['TZ', 'LANG', 'LC_ALL', 'RES_OPTIONS', 'MALLOC_ARENA_MAX', 'MALLOC_TRIM_THRESHOLD_'] as const
const LEAST_MEMORY = 1024 ** 3
/** Share of the system's memory that all workers together may take. */
const SHARE = 0.75

export function workerCommand(): WorkerCommand {
  const env: Record<string, string> = { NODE_CHANNEL_FD: String(HANDLES_DESCRIPTOR) }
  for (const name of KEPT) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  return { file: process.execPath, arguments: ['--disable-warning=ExperimentalWarning', PROGRAM], env }
}

/** Returns the resident bytes at which one of `count` workers is ended. */
export function maxMemoryOf(count: number): number {
  return Math.max(LEAST_MEMORY, Math.floor((totalmem() * SHARE) / count))
}
