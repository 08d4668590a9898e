/** A connection whose peer is the test. */
import { Buffer } from 'node:buffer'

export class FakeStream {
  onData: ((bytes: Uint8Array) => void) | undefined
  onDrain: (() => void) | undefined
  onClosed: (() => void) | undefined
  paused = true
  congested = false
  queued = 0
  closed = false
  failure: Error | undefined
  writes = 0
  #sent: Buffer[] = []

  write(bytes: Uint8Array): void {
    this.writes++
    this.#sent.push(Buffer.from(bytes))
  }

  close(): void {
    this.closed = true
  }

  destroy(): void {
    this.closed = true
  }

  /** The peer sends this; where it came from is written anew afterwards. */
  say(...messages: Uint8Array[]): void {
    const chunk = Buffer.concat(messages)
    this.onData?.(chunk)
    chunk.fill(0xee)
  }

  /** All that the peer was sent since the last time. */
  take(): Buffer {
    const sent = Buffer.concat(this.#sent)
    this.#sent = []
    return sent
  }
}
