/**
 * The broker's side of the index: a separate thread, since a search takes time and SQLite cannot be
 * interrupted. The thread starts with the first call, and again after its death.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { ContentTest } from '../search/words.ts'
import {
  type ContentEvent,
  type ContentIndex,
  ContentsBusyError,
  type Extent,
  type FoundSessions,
  type Match,
} from './contents.ts'
import type { ContentDatabase } from './database.ts'
import type { EventIndex } from './follower.ts'
import type { ContentAnswer, ContentCall, ContentMethod, ContentThreadData } from './messages.ts'

/** In the built package the worker is JavaScript, beside this file as it is here. */
const THREAD = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)
/** Limit of waiting searches; more are rejected. */
const MAX_WAITING = 32
const MAX_HEAP_MIB = 256

interface Waiting {
  resolve: (value: unknown) => void
  reject: (error: Error) => void
}

export class ContentThread implements ContentIndex, EventIndex {
  readonly #data: ContentThreadData
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  #next = 0
  #isClosed = false

  /** File and mode, as for ContentDatabase. */
  constructor(data: ContentThreadData) {
    this.#data = data
  }

  sequence(): Promise<number> {
    return this.#ask('sequence', [])
  }

  addEvents(events: readonly ContentEvent[], sequence: number): Promise<void> {
    return this.#ask('addEvents', [events, sequence])
  }

  /** Returns whether there is nothing to do for this recording. */
  has(session: string, digest: string): Promise<boolean> {
    return this.#ask('has', [session, digest])
  }

  extent(session: string): Promise<Extent> {
    return this.#ask('extent', [session])
  }

  sessionsWith(test: ContentTest, between?: { from: number; to: number }): Promise<FoundSessions> {
    return this.#search('sessionsWith', [test, between])
  }

  matches(session: string, tests: readonly ContentTest[]): Promise<Match[]> {
    return this.#search('matches', [session, tests])
  }

  newest(tests: readonly ContentTest[], limit: number): Promise<Match[]> {
    return this.#search('newest', [tests, limit])
  }

  /** Completes the running call; waiting calls fail. */
  async close(): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    if (!worker) return
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    worker.ref()
    worker.postMessage('close')
    await ended
  }

  #search<M extends ContentMethod>(
    method: M,
    args: Parameters<ContentDatabase[M]>,
  ): Promise<ReturnType<ContentDatabase[M]>> {
    if (this.#waiting.size >= MAX_WAITING) throw new ContentsBusyError('too many searches at once')
    return this.#ask(method, args)
  }

  #ask<M extends ContentMethod>(
    method: M,
    args: Parameters<ContentDatabase[M]>,
  ): Promise<ReturnType<ContentDatabase[M]>> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new Error('the search thread is closed')
      const id = this.#next++
      this.#waiting.set(id, { resolve: resolve as Waiting['resolve'], reject })
      const worker = this.#start()
      // The thread keeps the process running only while a call waits for it.
      worker.ref()
      worker.postMessage({ id, method, args } as ContentCall)
    })
  }

  #start(): Worker {
    if (this.#worker) return this.#worker
    const worker = new Worker(THREAD, {
      workerData: this.#data,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    })
    let reason = 'the search thread has ended'
    worker.on('message', (answer: ContentAnswer) => {
      const waiting = this.#waiting.get(answer.id)
      this.#waiting.delete(answer.id)
      if ('failure' in answer) waiting?.reject(new Error(answer.failure))
      else waiting?.resolve(answer.value)
      if (this.#waiting.size === 0) worker.unref()
    })
    worker.on('error', (error) => {
      reason = error.message
    })
    worker.on('exit', () => {
      this.#worker = undefined
      for (const { reject } of this.#waiting.values()) reject(new Error(reason))
      this.#waiting.clear()
    })
    this.#worker = worker
    return worker
  }
}
