/** The broker's side of the indexing thread: starts it for a job, and stops it when it is idle or stuck. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { FromIndexer, IndexJob } from './messages.ts'

/** In the built package the worker is JavaScript, beside this file as it is here. */
const THREAD = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)
/** Silence after which the thread counts as stuck in a recording's content. */
const SILENCE_MS = 5 * 60_000
/** Idle time after which the thread is stopped, to release its memory. */
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

  /** Runs one job at a time. Throws if the pass fails, or if the thread dies or has to be stopped. */
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

  /** Stops the thread at once, for good. */
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
    // Errors are reported by the running job.
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
