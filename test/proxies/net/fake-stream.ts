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

  /** Delivers the peer's messages, and overwrites their buffer afterwards. */
  say(...messages: Uint8Array[]): void {
    const chunk = Buffer.concat(messages)
    this.onData?.(chunk)
    chunk.fill(0xee)
  }

  /** Returns everything sent to the peer since the last call. */
  take(): Buffer {
    const sent = Buffer.concat(this.#sent)
    this.#sent = []
    return sent
  }
}
