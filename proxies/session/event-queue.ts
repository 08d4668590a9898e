/**
 * The events of one session on their way to the audit log: sent one at a time, so that no session fills the
 * log's queue.
 */
import type { ProxyEventCode, ProxyFields } from '../../src/contract/gate.ts'
import { MAX_PENDING_EVENTS } from './limits.ts'

export interface EventQueueOptions {
  /** Resolves when the event is in the audit log. */
  send: <C extends ProxyEventCode>(code: C, fields: ProxyFields<C>) => Promise<void>
  /** An event whose result is not awaited could not be written. */
  onFailure: () => void
  /** Called when fewer events wait again. */
  onDrain: () => void
}

export class EventQueue {
  readonly #options: EventQueueOptions
  #last: Promise<void> = Promise.resolve()
  #pending = 0

  constructor(options: EventQueueOptions) {
    this.#options = options
  }

  /** True while so many events wait that nothing should be read that causes more. */
  get isFull(): boolean {
    return this.#pending > MAX_PENDING_EVENTS
  }

  /** Queues the event without waiting for the audit log. */
  tell<C extends ProxyEventCode>(code: C, fields: ProxyFields<C>): void {
    this.write(code, fields).catch(this.#options.onFailure)
  }

  /** Resolves when this event and all earlier ones are in the audit log. */
  write<C extends ProxyEventCode>(code: C, fields: ProxyFields<C>): Promise<void> {
    const { send, onDrain } = this.#options
    this.#pending++
    const written = this.#last.then(() => send(code, fields))
    const settled = () => {
      if (this.#pending-- > MAX_PENDING_EVENTS) onDrain()
    }
    written.then(settled, settled)
    this.#last = written
    return written
  }

  /** Resolves when the last event was written, or has failed. */
  settled(): Promise<void> {
    return this.#last.catch(() => undefined)
  }
}
