/** The broker's side of the indexing thread: starts it for a job, and stops it when it is idle or stuck. */
import { programBeside, Thread } from '../../threads/thread.ts'
import type { FromIndexer, IndexJob } from './messages.ts'

/** Silence after which the thread counts as stuck in a recording's content. */
const SILENCE_MS = 5 * 60_000
/** Idle time after which the thread is stopped, to release its memory. */
const IDLE_MS = 30_000
const MAX_HEAP_MIB = 512

/** The job in progress. */
interface Running {
  onAnswer: (answer: FromIndexer) => void
  onLost: (error: Error) => void
}

export class IndexThread {
  readonly #silenceMs: number
  readonly #thread: Thread<IndexJob, FromIndexer>
  #running: Running | undefined
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: { program?: URL; silenceMs?: number } = {}) {
    this.#silenceMs = options.silenceMs ?? SILENCE_MS
    this.#thread = new Thread('indexing', {
      program: options.program ?? programBeside(import.meta.url, 'worker'),
      maxHeapMib: MAX_HEAP_MIB,
      onAnswer: (answer) => this.#running?.onAnswer(answer),
      onLost: (error) => this.#running?.onLost(error),
    })
  }

  /** Runs one job at a time. Throws if the pass fails, or if the thread dies or has to be stopped. */
  async run(job: IndexJob): Promise<void> {
    if (this.#isClosed) throw new Error('the indexing thread is closed')
    clearTimeout(this.#idle)
    let silence: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        const listen = () => {
          clearTimeout(silence)
          silence = setTimeout(() => {
            reject(new Error(`the indexing thread said nothing for ${this.#silenceMs / 1000} s`))
            void this.#thread.destroy()
          }, this.#silenceMs)
          silence.unref()
        }
        const onAnswer = (answer: FromIndexer) => {
          if (answer.kind === 'progress') listen()
          else if (answer.kind === 'done') resolve()
          else reject(new Error(answer.reason))
        }
        this.#running = { onAnswer, onLost: reject }
        listen()
        this.#thread.post(job)
      })
    } finally {
      clearTimeout(silence)
      this.#running = undefined
      this.#idle = setTimeout(() => void this.#thread.destroy(), IDLE_MS)
      this.#idle.unref()
    }
  }

  /** Stops the thread for good, even within a job. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await this.#thread.destroy()
  }
}
