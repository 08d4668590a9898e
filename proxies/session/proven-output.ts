/**
 * Strict recording: what goes to the client waits until all that was recorded so far is on the disk under a signed
 * checkpoint, so that what somebody saw is in the recording whatever happens next. Input goes on to the target at
 * once. All messages wait in one line, whatever they are: none may overtake another.
 *
 * While the disk is busy, what comes gathers for its next turn: a message waits for one or two flushes.
 */
import { Buffer } from 'node:buffer'
import { setTimeout as sleep } from 'node:timers/promises'
import { RECORDING_CLOSE_MS, STRICT_HELD } from './limits.ts'

/** The client's side of a session, as far as it is sent to. */
export interface ProvenClient {
  /** Takes what is to be sent; it goes by `sendNow` later on. */
  onSend: ((payload: Uint8Array) => void) | undefined
  /** More may be sent. */
  onDrain: (() => void) | undefined
  /** Past `onSend`. */
  sendNow(payload: Uint8Array): void
}

export interface ProvenOutputOptions {
  client: ProvenClient
  /** Resolves when all that was recorded until now is on the disk under a checkpoint; rejects when it never will be. */
  flush: () => Promise<void>
}

export class ProvenOutput {
  readonly #options: ProvenOutputOptions
  #held: Buffer[] = []
  #bytes = 0
  #isProving = false
  #isOver = false
  #onEmpty: (() => void) | undefined

  constructor(options: ProvenOutputOptions) {
    this.#options = options
    options.client.onSend = (payload) => this.#hold(payload)
  }

  /** Nothing more should be read from the target until the client's `onDrain`. */
  get isFull(): boolean {
    return this.#bytes > STRICT_HELD
  }

  /** The recording has failed: what waits is dropped, and what is said from now on is the bastion's own. */
  destroy(): void {
    this.#isOver = true
    this.#options.client.onSend = undefined
    this.#drop()
  }

  /** Resolves when nothing waits any more; what a disk that hangs holds up is dropped. */
  async flushAll(): Promise<void> {
    if (this.#held.length === 0 && !this.#isProving) return
    const inTime = new AbortController()
    const late = sleep(RECORDING_CLOSE_MS, undefined, { signal: inTime.signal }).catch(() => undefined)
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
    await Promise.race([empty, late])
    inTime.abort()
    this.destroy()
  }

  #hold(payload: Uint8Array): void {
    this.#held.push(Buffer.from(payload))
    this.#bytes += payload.length
    if (this.#isProving) return
    this.#isProving = true
    // What is recorded only after it was passed on is so within the same turn.
    queueMicrotask(() => void this.#prove())
  }

  async #prove(): Promise<void> {
    const { client, flush } = this.#options
    while (this.#held.length > 0) {
      const batch = this.#held
      this.#held = []
      try {
        await flush()
      } catch {
        this.destroy()
      }
      if (this.#isOver) break
      for (const payload of batch) {
        this.#bytes -= payload.length
        client.sendNow(payload)
      }
      client.onDrain?.()
    }
    this.#isProving = false
    this.#onEmpty?.()
  }

  #drop(): void {
    this.#held = []
    this.#bytes = 0
    this.#onEmpty?.()
  }
}
