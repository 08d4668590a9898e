/** The indexing thread as the broker sees it: started for a job, ended when it is idle or stuck. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { FromIndexer, IndexJob } from './messages.ts'

/** In the package that was built it is JavaScript, beside this file as it is here. */
const THREAD = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)
/** Without a word for so long the thread is stuck in what a recording holds. */
const SILENCE_MS = 5 * 60_000
/** Its memory is given back when nothing was to be done for so long. */
const IDLE_MS = 30_000
const MAX_HEAP_MIB = 512

export class IndexThread {
  readonly #program: URL
  readonly #silenceMs: number
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: { program?: URL; silenceMs?: number } = {}) {
    this.#program = options.program ?? THREAD
    this.#silenceMs = options.silenceMs ?? SILENCE_MS
  }

  /** One at a time. Throws when the pass fails, and when the thread dies of it or has to be ended. */
  async run(job: IndexJob): Promise<void> {
    if (this.#isClosed) throw new Error('the indexing thread is closed')
    clearTimeout(this.#idle)
    const worker = this.#start()
    try {
      await this.#answer(worker, job)
    } finally {
      this.#idle = setTimeout(() => void this.#end(), IDLE_MS)
      this.#idle.unref()
    }
  }

  /** Ends the thread, whatever it is at, and for good. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#end()
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idle)
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
  }

  #start(): Worker {
    if (this.#worker) return this.#worker
    const worker = new Worker(this.#program, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB } })
    const forget = () => {
      if (this.#worker === worker) this.#worker = undefined
    }
    // What went wrong is told to the job that was under way.
    worker.on('error', forget).on('exit', forget)
    worker.unref()
    this.#worker = worker
    return worker
  }

  #answer(worker: Worker, job: IndexJob): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      let silence: NodeJS.Timeout | undefined
      const end = (settle: () => void) => {
        clearTimeout(silence)
        worker.off('message', heard).off('error', died).off('exit', exited)
        settle()
      }
      const died = (error: Error) => end(() => reject(error))
      const exited = () => end(() => reject(new Error('the indexing thread has ended')))
      const listen = () => {
        clearTimeout(silence)
        silence = setTimeout(() => {
          end(() => reject(new Error(`the indexing thread said nothing for ${this.#silenceMs / 1000} s`)))
          void this.#end()
        }, this.#silenceMs)
        silence.unref()
      }
      const heard = (message: FromIndexer) => {
        if (message.kind === 'progress') listen()
        else if (message.kind === 'done') end(resolve)
        else end(() => reject(new Error(message.reason)))
      }
      worker.on('message', heard).on('error', died).on('exit', exited)
      listen()
      worker.postMessage(job)
    })
  }
}
