/**
 * The broker's side of the index: a separate thread, since a search takes time and SQLite cannot be
 * interrupted. The thread starts with the first call, and again after its death.
 */
import type { ContentTest } from '../search/words.ts'
import { Questions } from '../threads/questions.ts'
import { programBeside, Thread } from '../threads/thread.ts'
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

/** Limit of waiting searches; more are rejected. */
const MAX_WAITING = 32
const MAX_HEAP_MIB = 256

export class ContentThread implements ContentIndex, EventIndex {
  readonly #questions = new Questions<unknown>()
  readonly #thread: Thread<ContentCall | 'close', ContentAnswer>
  #isClosed = false

  /** File and mode, as for ContentDatabase. */
  constructor(data: ContentThreadData) {
    this.#thread = new Thread('search', {
      program: programBeside(import.meta.url, 'worker'),
      workerData: () => data,
      maxHeapMib: MAX_HEAP_MIB,
      onAnswer: (answer) => this.#answered(answer),
      onLost: (error) => this.#questions.failAll(error),
    })
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

  /** Completes the search in progress; waiting ones fail. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#thread.close('close')
  }

  #search<M extends ContentMethod>(
    method: M,
    args: Parameters<ContentDatabase[M]>,
  ): Promise<ReturnType<ContentDatabase[M]>> {
    if (this.#questions.size >= MAX_WAITING) throw new ContentsBusyError('too many searches at once')
    return this.#ask(method, args)
  }

  async #ask<M extends ContentMethod>(
    method: M,
    args: Parameters<ContentDatabase[M]>,
  ): Promise<ReturnType<ContentDatabase[M]>> {
    if (this.#isClosed) throw new Error('the search thread is closed')
    const value = await this.#questions.ask((id) => {
      this.#thread.post({ id, method, args } as ContentCall)
      // The thread keeps the process running only while a call waits for it.
      this.#thread.ref()
    })
    return value as ReturnType<ContentDatabase[M]>
  }

  #answered(answer: ContentAnswer): void {
    if ('failure' in answer) this.#questions.fail(answer.id, new Error(answer.failure))
    else this.#questions.answer(answer.id, answer.value)
    if (this.#questions.size === 0) this.#thread.unref()
  }
}
