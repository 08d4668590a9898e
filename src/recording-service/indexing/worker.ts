/** The indexing thread: one pass over a closed recording for each job, one job at a time. */
import { join } from 'node:path'
import { parentPort } from 'node:worker_threads'
import { FILE_NAME } from '../../../recordings/container/format/limits.ts'
import { runPass } from '../../../recordings/container/pass.ts'
import { RecordingReader } from '../../../recordings/container/reader.ts'
import { readPieces } from '../../../recordings/container/session-file.ts'
import { giveWay } from '../../threads/priority.ts'
import { consumersOf } from './consumers.ts'
import type { FromIndexer, IndexJob } from './messages.ts'

/** Of 19: sessions take precedence over indexing. */
const NICENESS = 15
/** Interval at which the thread reports that it is at work. */
const PROGRESS_MS = 1000

giveWay(NICENESS)

function answer(message: FromIndexer): void {
  parentPort?.postMessage(message)
}

async function index(job: IndexJob): Promise<void> {
  const reader = await RecordingReader.open(readPieces(join(job.directory, FILE_NAME)), job.key)
  let told = performance.now()
  await runPass(reader, await consumersOf(job), () => {
    const now = performance.now()
    if (now - told < PROGRESS_MS) return
    told = now
    answer({ kind: 'progress' })
  })
}

parentPort?.on('message', (job: IndexJob) => {
  index(job)
    .then(() => answer({ kind: 'done' }))
    .catch((error: unknown) =>
      answer({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) }),
    )
    .finally(() => job.key.fill(0))
})
