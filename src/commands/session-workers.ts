/** The finding of `sallyport check` about the boundary between sessions and broker. */
import { existsSync, statSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { boundaryOf } from '../confine/report.ts'
import { tryCage } from '../confine/try-cage.ts'
import { workerCage } from '../confine/worker-cage.ts'
import type { Finding } from './finding.ts'

const MEMORY_OF_TRIAL = 1024 ** 3

/** Starts a process in the cage of a session worker, and returns what it reports. */
export async function sessionWorkers({
  workers,
  runAs,
  dataDir,
}: Pick<Config, 'workers' | 'runAs' | 'dataDir'>): Promise<Finding> {
  const subject = 'workers'
  if (workers === 0) {
    return { level: 'warning', subject, text: 'no boundary: sessions run in the broker itself (workers: 0)' }
  }
  try {
    const cage = workerCage({ runAs, keepOpen: [], memory: MEMORY_OF_TRIAL })
    if (cage.uid !== undefined && existsSync(dataDir) && statSync(dataDir).uid === cage.uid) {
      const text = `no boundary: ${dataDir} belongs to user ${cage.uid}, whom session workers run as: chown it, or name another user in run_as`
      return { level: 'error', subject, text }
    }
    const { isWhole, text } = boundaryOf(await tryCage(cage), process.geteuid?.() ?? -1)
    return { level: isWhole ? 'ok' : 'warning', subject, text }
  } catch (error) {
    return { level: 'error', subject, text: (error as Error).message }
  }
}
