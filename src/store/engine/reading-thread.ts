/**
 * Reads long lists in a separate thread: sorting 100,000 rows, or transferring them at once, would stop all
 * sessions meanwhile. The thread starts with the first list, and again after its death.
 */

import { SearchError } from '../../search/grammar.ts'
import { programBeside, Thread } from '../../threads/thread.ts'
import { StoreBusyError } from './errors.ts'
import type { ReadingAnswer, ReadingCall, ReadingData } from './reading-messages.ts'

/** Limit of lists in progress: each has a file (reading-spool.ts), or its rows in memory. */
export const MAX_CURSORS = 64
const MAX_HEAP_MIB = 256

interface Waiting {
  resolve: (answer: Extract<ReadingAnswer, { rows: unknown[] }>) => void
  reject: (error: Error) => void
}

export class ReadingThread {
  /** Open cursors, with the question for the next rows of each. */
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
   * Yields the rows of a query in pieces of at most `most`, all as of one moment after the first request. The
   * first piece comes after all rows have been read: an error of the query, or a lack of room, is thrown
   * before any piece.
   * @throws StoreBusyError
   */
  async *rows(sql: string, parameters: readonly unknown[], most: number): AsyncGenerator<unknown[]> {
    if (this.#isClosed) throw new Error('the store is closed')
    if (MAX_CURSORS <= this.#cursors.size) throw new StoreBusyError()
    const run = this.#thread.start()
    const cursor = this.#next++
    this.#cursors.set(cursor, undefined)
    // The thread keeps the process running only while a list is read.
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
    if ('failure' in answer) waiting.reject(errorOf(answer))
    else waiting.resolve(answer)
  }

  #lost(error: Error): void {
    for (const waiting of this.#cursors.values()) waiting?.reject(error)
  }
}

function errorOf({ failure, isBusy, search }: Extract<ReadingAnswer, { failure: string }>): Error {
  if (search) return new SearchError(search.fault, search.position, search.expected, search.found)
  return isBusy ? new StoreBusyError() : new Error(failure)
}
