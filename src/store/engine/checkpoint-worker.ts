/** The checkpoint thread: writes the log of the database back into its file when it is told to. */
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

/** Time that a checkpoint waits for one of another process. */
const BUSY_TIMEOUT_MS = 5000

const database = new DatabaseSync((workerData as { path: string }).path, { timeout: BUSY_TIMEOUT_MS })
const checkpoint = database.prepare('pragma wal_checkpoint(passive)')

parentPort?.on('message', () => {
  checkpoint.get()
  parentPort?.postMessage('written back')
})
