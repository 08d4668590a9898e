/**
 * Strict recording: output for the client waits until everything recorded so far is on the disk under a
 * signed checkpoint, so that all output a user has seen is in the recording, whatever happens next. Input is
 * forwarded to the target at once. All kinds of messages wait in one queue: none may overtake another.
 *
 * Output that arrives while the disk is busy waits for the next flush: a message waits for one or two
 * flushes.
 */
import { Buffer } from 'node:buffer'
import { setTimeout as sleep } from 'node:timers/promises'
import { RECORDING_CLOSE_MS, STRICT_HELD } from './limits.ts'

/** The client's side of a session, for sending. */
export interface ProvenClient {
  /** Receives the messages to be sent; `sendNow` sends them later. */
  onSend: ((payload: Uint8Array) => void) | undefined
  /** Called when more may be sent. */
  onDrain: (() => void) | undefined
  /** Sends without `onSend`. */
  sendNow(payload: Uint8Array): void
}

export interface ProvenOutputOptions {
  client: ProvenClient
  /**
   * Resolves when everything recorded until now is on the disk under a checkpoint; rejects if it never will
   * be.
   */
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

  /** True while nothing more should be read from the target, until the client's `onDrain`. */
  get isFull(): boolean {
    return this.#bytes > STRICT_HELD
  }

  /**
   * Drops the waiting messages after the recording has failed. Later messages come from the bastion itself
   * and are sent at once.
   */
  destroy(): void {
    this.#isOver = true
    this.#options.client.onSend = undefined
    this.#drop()
  }

  /** Resolves when nothing waits any more; messages that a hanging disk holds up are dropped. */
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
    // Some frames are recorded after their message was forwarded, but within the same turn.
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
