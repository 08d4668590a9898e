/** The search thread: one database, one call after the other. */
import { parentPort, workerData } from 'node:worker_threads'
import { giveWay } from '../threads/priority.ts'
import { ContentDatabase } from './database.ts'
import type { ContentAnswer, ContentCall, ContentThreadData } from './messages.ts'

/** Of 19: sessions take precedence over searches. */
const NICENESS = 5

giveWay(NICENESS)

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
