/** The search thread: one database, one call after the other. */
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { ContentDatabase } from './database.ts'
import type { ContentAnswer, ContentCall, ContentThreadData } from './messages.ts'

/** Of 19: sessions take precedence over searches. */
const NICENESS = 5

// On Linux 0 is the calling thread (setpriority(2), C library/kernel differences), elsewhere the whole process.
if (process.platform === 'linux') setPriority(0, NICENESS)

const { path, mode } = workerData as ContentThreadData
const database = new ContentDatabase(path, mode)

parentPort?.on('message', (call: ContentCall | 'close') => {
  if (call === 'close') {
    database.close()
    parentPort?.close()
    return
  }
  parentPort?.postMessage(answer(call))
})

function answer({ id, method, args }: ContentCall): ContentAnswer {
  try {
    return { id, value: (database[method] as (...args: unknown[]) => unknown).apply(database, args) }
  } catch (error) {
    return { id, failure: error instanceof Error ? error.message : String(error) }
  }
}
