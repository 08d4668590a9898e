/**
 * A thread for work that the event loop must not wait for: started with the first message, and anew after it has died.
 * It keeps the process alive only while `ref` holds it.
 */
import { extname } from 'node:path'
import { type Transferable, Worker } from 'node:worker_threads'

export interface ThreadOptions<Answer> {
  program: URL
  /** Plain data that the program finds as its `workerData`. Read at each start. */
  workerData?: () => unknown
  /** Size of its heap at most; Node's own limit if absent. */
  maxHeapMib?: number
  onAnswer: (answer: Answer) => void
  /** Called once for each thread that has ended, whether it died or was destroyed. */
  onLost?: (error: Error) => void
}

/** Returns the program of a thread: the file `NAME.ts` beside the caller's, or `NAME.js` in a package that was built. */
export function programBeside(caller: string, name: string): URL {
  return new URL(`./${name}${extname(caller)}`, caller)
}

export class Thread<Ask, Answer> {
  readonly #options: ThreadOptions<Answer>
  readonly #name: string
  #worker: Worker | undefined
  #runs = 0

  /** `name` stands in the errors of a thread that has died: `the NAME thread has ended`. */
  constructor(name: string, options: ThreadOptions<Answer>) {
    this.#name = name
    this.#options = options
  }

  /** The number of the present run, or undefined if no thread runs. A thread that is started anew has another one. */
  get run(): number | undefined {
    return this.#worker && this.#runs
  }

  /** Starts the thread unless it runs, and returns the number of its run. */
  start(): number {
    if (this.#worker) return this.#runs
    const { program, workerData, maxHeapMib, onAnswer } = this.#options
    const worker = new Worker(program, {
      ...(workerData && { workerData: workerData() }),
      ...(maxHeapMib !== undefined && { resourceLimits: { maxOldGenerationSizeMb: maxHeapMib } }),
    })
    worker.unref()
    worker.on('message', onAnswer)
    worker.on('error', (error) => this.#lost(worker, error))
    worker.on('exit', () => this.#lost(worker, this.#ended()))
    this.#worker = worker
    return ++this.#runs
  }

  /** Sends a message, and starts the thread for it. */
  post(ask: Ask, transfer: Transferable[] = []): void {
    this.start()
    this.#worker?.postMessage(ask, transfer)
  }

  /** Sends a message to the present thread; without one nothing happens. */
  send(ask: Ask, transfer: Transferable[] = []): void {
    this.#worker?.postMessage(ask, transfer)
  }

  /** Keeps the process alive as long as the present thread runs, until `unref`. */
  ref(): void {
    this.#worker?.ref()
  }

  unref(): void {
    this.#worker?.unref()
  }

  /** Sends a last message, on which the thread ends by itself, and waits until it has. */
  async close(last: Ask): Promise<void> {
    const worker = this.#worker
    if (!worker) return
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    worker.ref()
    worker.postMessage(last)
    await exited
  }

  /** Ends the thread in the middle of its work. The next message starts another. */
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
