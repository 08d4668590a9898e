/**
 * A thread for work that the event loop must not wait for: started with the first message, and again after it
 * died. It keeps the process alive only between `ref` and `unref`.
 */
import { extname } from 'node:path'
import { type Transferable, Worker } from 'node:worker_threads'

export interface ThreadOptions<Answer> {
  program: URL
  /** Plain data that the program reads as its `workerData`. Called at each start. */
  workerData?: () => unknown
  /** Largest size of its heap; Node's own limit if absent. */
  maxHeapMib?: number
  onAnswer: (answer: Answer) => void
  /** Called once for each thread that has ended, whether it died or was destroyed. */
  onLost?: (error: Error) => void
}

/**
 * Returns the URL of a thread's program: the file `NAME.ts` beside the caller's, or `NAME.js` in a built
 * package.
 */
export function programBeside(caller: string, name: string): URL {
  return new URL(`./${name}${extname(caller)}`, caller)
}

export class Thread<Ask, Answer> {
  readonly #options: ThreadOptions<Answer>
  readonly #name: string
  #worker: Worker | undefined
  #runs = 0

  /** `name` is part of the error after a thread's death: `the NAME thread has ended`. */
  constructor(name: string, options: ThreadOptions<Answer>) {
    this.#name = name
    this.#options = options
  }

  /** The number of the present run, or undefined if no thread runs. A restarted thread has a new one. */
  get run(): number | undefined {
    return this.#worker && this.#runs
  }

  /** Starts the thread unless it runs, and returns the number of its run. */
  start(): number {
    if (this.#worker) return this.#runs
    const { program, workerData, maxHeapMib, onAnswer } = this.#options
    const worker = new Worker(program, {
      // In /proc and in profiles the thread has its name.
      name: this.#name,
      ...(workerData && { workerData: workerData() }),
      ...(maxHeapMib !== undefined && { resourceLimits: { maxOldGenerationSizeMb: maxHeapMib } }),
    })
    worker.unref()
    worker.on('message', (answer: Answer) => {
      // A destroyed thread may have answered before it ended.
      if (this.#worker === worker) onAnswer(answer)
    })
    worker.on('error', (error) => this.#lost(worker, error))
    worker.on('exit', () => this.#lost(worker, this.#ended()))
    this.#worker = worker
    return ++this.#runs
  }

  /** Sends a message, and starts the thread if none runs. */
  post(ask: Ask, transfer: Transferable[] = []): void {
    this.start()
    this.#worker?.postMessage(ask, transfer)
  }

  /** Sends a message to the present thread; does nothing without one. */
  send(ask: Ask, transfer: Transferable[] = []): void {
    this.#worker?.postMessage(ask, transfer)
  }

  /** Keeps the process alive while the present thread runs, until `unref`. */
  ref(): void {
    this.#worker?.ref()
  }

  unref(): void {
    this.#worker?.unref()
  }

  /** Sends a last message, after which the thread ends by itself, and waits for that. */
  async close(last: Ask): Promise<void> {
    const worker = this.#worker
    if (!worker) return
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    worker.ref()
    worker.postMessage(last)
    await exited
  }

  /** Ends the thread at once. The next message starts another. */
  async destroy(): Promise<void> {
    const worker = this.#worker
    if (!worker) return
    this.#lost(worker, this.#ended())
    await worker.terminate()
  }

  #ended(): Error {
    return new Error(`the ${this.#name} thread has ended`)
  }

  #lost(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    this.#options.onLost?.(error)
  }
}
