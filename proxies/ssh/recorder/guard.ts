/**
 * Turns a recorder's MalformedError, thrown at a stream that breaks its protocol, into one violation: reports
 * it to the relay, records it, and ignores the rest of the stream.
 */
import type { Exit } from '../../../recordings/container/frames.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import type { ChannelFrames } from './frames.ts'
import type { ChannelRecorder, RecorderEvents } from './recorder.ts'

export class Guard implements ChannelRecorder {
  readonly #inner: ChannelRecorder
  readonly #frames: ChannelFrames
  readonly #events: RecorderEvents
  #violated = false

  constructor(inner: ChannelRecorder, frames: ChannelFrames, events: RecorderEvents) {
    this.#inner = inner
    this.#frames = frames
    this.#events = events
  }

  fromClient(data: Uint8Array): void {
    if (this.#violated) return
    try {
      this.#inner.fromClient(data)
    } catch (error) {
      this.#violation(error)
    }
  }

  fromTarget(data: Uint8Array, stderr: boolean): void {
    if (this.#violated) return
    try {
      this.#inner.fromTarget(data, stderr)
    } catch (error) {
      this.#violation(error)
    }
  }

  resize(columns: number, rows: number): void {
    this.#inner.resize(columns, rows)
  }

  exit(exit: Exit): void {
    this.#inner.exit(exit)
  }

  close(): void {
    this.#inner.close()
  }

  #violation(error: unknown): void {
    if (!(error instanceof MalformedError)) throw error
    this.#violated = true
    this.#frames.denied({ what: 'data of the channel', reason: error.message })
    this.#events.onViolation(error.message)
  }
}
