/**
 * Long lists, read in a thread of their own: sorting 100,000 rows, or handing them over at once, would stop all
 * sessions meanwhile. Started with the first of them, and anew when it has died.
 */
import { programBeside, Thread } from '../../threads/thread.ts'
import { StoreBusyError } from './errors.ts'
import type { ReadingAnswer, ReadingCall, ReadingData } from './reading-messages.ts'

/** Lists that are under way at the same time: each has a file (spool.ts), or its rows in memory. */
export const MAX_CURSORS = 64
const MAX_HEAP_MIB = 256

interface Waiting {
  resolve: (answer: Extract<ReadingAnswer, { rows: unknown[] }>) => void
  reject: (error: Error) => void
}

export class ReadingThread {
  /** Cursors that are open, and the question for the next rows of each. */
  readonly #cursors = new Map<number, Waiting | undefined>()
  readonly #thread: Thread<ReadingCall, ReadingAnswer>
  #next = 0
  #isClosed = false

  constructor(data: ReadingData) {
    this.#thread = new Thread('reading', {
      program: programBeside(import.meta.url, 'reading-worker'),
      workerData: () => data,
      maxHeapMib: MAX_HEAP_MIB,
      onAnswer: (answer) => this.#answered(answer),
      onLost: (error) => this.#lost(error),
    })
  }

  /**
   * The rows of a query, all as they are at one moment after the first is asked for, in pieces of `most` at most. The
   * first comes when all have been read: what is wrong with the query, or finds no room, is told before any.
   * @throws StoreBusyError
   */
  async *rows(sql: string, parameters: readonly unknown[], most: number): AsyncGenerator<unknown[]> {
    if (this.#isClosed) throw new Error('the store is closed')
    if (MAX_CURSORS <= this.#cursors.size) throw new StoreBusyError()
    const run = this.#thread.start()
    const cursor = this.#next++
    this.#cursors.set(cursor, undefined)
    // The thread keeps the process alive only while a list is read.
    this.#thread.ref()
    this.#thread.send({ type: 'open', cursor, sql, parameters, rows: most })
    try {
      for (;;) {
        const { rows, isLast } = await new Promise<Parameters<Waiting['resolve']>[0]>((resolve, reject) => {
          if (this.#thread.run !== run) throw new Error('the reading thread has ended')
          this.#cursors.set(cursor, { resolve, reject })
          this.#thread.send({ type: 'read', cursor })
        })
        if (rows.length > 0) yield rows
        if (isLast) return
      }
    } finally {
      this.#cursors.delete(cursor)
      this.#thread.send({ type: 'close', cursor })
      if (this.#cursors.size === 0) this.#thread.unref()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#thread.close({ type: 'end' })
  }

  #answered(answer: ReadingAnswer): void {
    const waiting = this.#cursors.get(answer.cursor)
    if (!waiting) return
    this.#cursors.set(answer.cursor, undefined)
    if ('failure' in answer) waiting.reject(answer.isBusy ? new StoreBusyError() : new Error(answer.failure))
    else waiting.resolve(answer)
  }

  #lost(error: Error): void {
    for (const waiting of this.#cursors.values()) waiting?.reject(error)
  }
}
