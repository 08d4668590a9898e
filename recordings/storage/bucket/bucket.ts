/**
 * The broker's client for the bucket: a separate thread does each operation, and starts with the first. If
 * the thread dies, its operations fail as `unavailable`; the next operation starts another.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Secret } from '../../../src/model/secret.ts'
import { BucketError } from './error.ts'
import type { FromThread, Operation, Operations, ThreadData, ToThread } from './messages.ts'
import type { BucketSettings } from './s3.ts'

/** In the built package the worker is JavaScript, beside this file as it is here. */
const THREAD = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)

export interface BucketOptions extends Omit<BucketSettings, 'secretKey'> {
  secretKey: Secret
  /** Prefix of all keys: empty, or ending with a slash. */
  prefix: string
  /** Bytes a second, or 0 for no limit. */
  rate: number
}

interface Waiting {
  resolve: (answer: Operations[Operation]['answers']) => void
  reject: (error: Error) => void
}

export class Bucket {
  readonly #options: BucketOptions
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  #next = 0
  #isClosed = false

  constructor(options: BucketOptions) {
    this.#options = options
  }

  get prefix(): string {
    return this.#options.prefix
  }

  /** Address of the bucket, for people. */
  get address(): string {
    const { endpoint, bucket, prefix, region } = this.#options
    return `${endpoint ?? `s3.${region}.amazonaws.com`}/${bucket}/${prefix}`
  }

  /** Throws BucketError. */
  ask<O extends Operation>(operation: O, takes: Operations[O]['takes']): Promise<Operations[O]['answers']> {
    if (this.#isClosed) return Promise.reject(new BucketError('unavailable', 'the broker is stopping'))
    const worker = this.#start()
    const id = this.#next++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as Waiting['resolve'], reject })
      worker.ref()
      worker.postMessage({ id, operation, takes } satisfies ToThread)
    })
  }

  /** Closes the thread; its operations fail. */
  async close(): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    if (worker) {
      this.#lost(worker)
      await worker.terminate()
    }
  }

  #start(): Worker {
    if (this.#worker) return this.#worker
    const { prefix: _, secretKey, rate, ...settings } = this.#options
    const workerData: ThreadData = { settings: { ...settings, secretKey: secretKey.revealText() }, rate }
    const worker = new Worker(THREAD, { workerData })
    worker.on('message', (message: FromThread) => this.#answered(worker, message))
    worker.on('error', () => this.#lost(worker))
    worker.on('exit', () => this.#lost(worker))
    this.#worker = worker
    return worker
  }

  #answered(worker: Worker, message: FromThread): void {
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    // An idle thread does not keep a command running.
    if (this.#waiting.size === 0) worker.unref()
    if ('fault' in message) waiting?.reject(new BucketError(message.fault, message.message))
    else waiting?.resolve(message.answer)
  }

  #lost(worker: Worker): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { reject } of waiting)
      reject(new BucketError('unavailable', 'the thread of the object store has ended'))
  }
}
