/** The indexing thread as the broker sees it: started for a job, ended when it is idle or stuck. */
import { programBeside, Thread } from '../../threads/thread.ts'
import type { FromIndexer, IndexJob } from './messages.ts'

/** A thread that reports nothing for so long is stuck in the contents of a recording. */
const SILENCE_MS = 5 * 60_000
/** Without a job for so long the thread is ended, and its memory released. */
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

  /** Runs one job at a time. Throws if the pass fails, or if the thread dies in it or has to be ended. */
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

  /** Ends the thread for good, in the middle of a job too. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await this.#thread.destroy()
  }
}
