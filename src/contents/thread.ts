/**
 * The index as the broker has it: in a thread of its own, for a search takes its time and SQLite cannot be
 * interrupted. Started with the first call, and anew when it has died.
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

/** Searches that wait; more are refused. */
const MAX_WAITING = 32
const MAX_HEAP_MIB = 256

export class ContentThread implements ContentIndex, EventIndex {
  readonly #questions = new Questions<unknown>()
  readonly #thread: Thread<ContentCall | 'close', ContentAnswer>
  #isClosed = false

  /** The file and its mode, as for ContentDatabase. */
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

  /** Whether nothing is to be done for this recording. */
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

  /** The search in progress is completed; those that wait fail. */
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
      // A thread keeps the process alive only while a question is open.
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
