/**
 * Reads long lists in a separate thread: sorting 100,000 rows, or transferring them at once, would stop all
 * sessions meanwhile. The thread starts with the first list, and again after its death.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { StoreBusyError } from './errors.ts'
import type { ReadingAnswer, ReadingCall, ReadingData } from './reading-messages.ts'

/** In the built package the worker is JavaScript, beside this file as it is here. */
const THREAD = new URL(`./reading-worker${extname(import.meta.url)}`, import.meta.url)
/** Limit of lists in progress: each has a file (reading-spool.ts), or its rows in memory. */
export const MAX_CURSORS = 64
const MAX_HEAP_MIB = 256

interface Waiting {
  resolve: (answer: Extract<ReadingAnswer, { rows: unknown[] }>) => void
  reject: (error: Error) => void
}

export class ReadingThread {
  readonly #data: ReadingData
  /** Open cursors, with the caller that waits for their next rows. */
  readonly #cursors = new Map<number, Waiting | undefined>()
  #worker: Worker | undefined
  #next = 0
  #isClosed = false

  constructor(data: ReadingData) {
    this.#data = data
  }

  /**
   * Yields the rows of a query in pieces of at most `most`, all as of one moment after the first request. The
   * first piece comes after all rows have been read: an error of the query, or a lack of room, is thrown
   * before any piece.
   * @throws StoreBusyError
   */
  async *rows(sql: string, parameters: readonly unknown[], most: number): AsyncGenerator<unknown[]> {
    if (this.#isClosed) throw new Error('the store is closed')
    if (MAX_CURSORS <= this.#cursors.size) throw new StoreBusyError()
    const worker = this.#start()
    const cursor = this.#next++
    this.#cursors.set(cursor, undefined)
    // The thread keeps the process running only while something is read.
    worker.ref()
    const tell = (call: ReadingCall) => worker.postMessage(call)
    tell({ type: 'open', cursor, sql, parameters, rows: most })
    try {
      for (;;) {
        const { rows, isLast } = await new Promise<Parameters<Waiting['resolve']>[0]>((resolve, reject) => {
          if (this.#worker !== worker) throw new Error('the reading thread has ended')
          this.#cursors.set(cursor, { resolve, reject })
          tell({ type: 'read', cursor })
        })
        if (rows.length > 0) yield rows
        if (isLast) return
      }
    } finally {
      this.#cursors.delete(cursor)
      tell({ type: 'close', cursor })
      if (this.#cursors.size === 0) worker.unref()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    if (!worker) return
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    worker.ref()
    worker.postMessage({ type: 'end' } satisfies ReadingCall)
    await ended
  }

  #start(): Worker {
    if (this.#worker) return this.#worker
    const worker = new Worker(THREAD, {
      workerData: this.#data,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    })
    let reason = 'the reading thread has ended'
    worker.on('message', (answer: ReadingAnswer) => {
      const waiting = this.#cursors.get(answer.cursor)
      if (!waiting) return
      this.#cursors.set(answer.cursor, undefined)
      if ('failure' in answer)
        waiting.reject(answer.isBusy ? new StoreBusyError() : new Error(answer.failure))
      else waiting.resolve(answer)
    })
    worker.on('error', (error) => {
      reason = error.message
    })
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
      for (const waiting of this.#cursors.values()) waiting?.reject(new Error(reason))
    })
    this.#worker = worker
    return worker
  }
}
