/**
 * The broker's client for the bucket: a separate thread does each operation, and starts with the first. If
 * the thread dies, its operations fail as `unavailable`; the next operation starts another.
 */
import type { Secret } from '../../../src/model/secret.ts'
import { Questions } from '../../../src/threads/questions.ts'
import { programBeside, Thread } from '../../../src/threads/thread.ts'
import { BucketError } from './error.ts'
import type { FromThread, Operation, Operations, ThreadData, ToThread } from './messages.ts'
import type { BucketSettings } from './s3.ts'

export interface BucketOptions extends Omit<BucketSettings, 'secretKey'> {
  secretKey: Secret
  /** Prefix of all keys: empty, or ending with a slash. */
  prefix: string
  /** Bytes a second, or 0 for no limit. */
  rate: number
}

export class Bucket {
  readonly #options: BucketOptions
  readonly #questions = new Questions<Operations[Operation]['answers']>()
  readonly #thread: Thread<ToThread, FromThread>
  #isClosed = false

  constructor(options: BucketOptions) {
    this.#options = options
    this.#thread = new Thread('object store', {
      program: programBeside(import.meta.url, 'worker'),
      workerData: () => this.#data(),
      onAnswer: (message) => this.#answered(message),
      onLost: () =>
        this.#questions.failAll(new BucketError('unavailable', 'the thread of the object store has ended')),
    })
  }

  get prefix(): string {
    return this.#options.prefix
  }

  /** Address of the bucket, for people. */
  get address(): string {
    const { endpoint, bucket, prefix, region } = this.#options
    return `${endpoint ?? `s3.${region}.amazonaws.com`}/${bucket}/${prefix}`
  }

  /** @throws BucketError */
  ask<O extends Operation>(operation: O, takes: Operations[O]['takes']): Promise<Operations[O]['answers']> {
    if (this.#isClosed) return Promise.reject(new BucketError('unavailable', 'the broker is stopping'))
    return this.#questions.ask((id) => {
      this.#thread.post({ id, operation, takes })
      this.#thread.ref()
    }) as Promise<Operations[O]['answers']>
  }

  /** Destroys the thread; the operations in progress fail. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#thread.destroy()
  }

  #data(): ThreadData {
    const { prefix: _, secretKey, rate, ...settings } = this.#options
    return { settings: { ...settings, secretKey: secretKey.revealText() }, rate }
  }

  #answered(message: FromThread): void {
    if ('fault' in message) this.#questions.fail(message.id, new BucketError(message.fault, message.message))
    else this.#questions.answer(message.id, message.answer)
    // An idle thread does not keep a command running.
    if (this.#questions.size === 0) this.#thread.unref()
  }
}
