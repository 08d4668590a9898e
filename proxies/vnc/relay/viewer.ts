/**
 * The viewer's connection from its ServerInit on: its messages go to the present display, or to the relay.
 */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import { type ClientMessage, ClientMessageReader } from '../codec/client-messages.ts'
import type { Extension } from './downstream.ts'

export class Viewer {
  readonly stream: ByteStream
  /** Bytes in a message are valid during the call only; it may throw MalformedError. */
  onMessage: ((message: ClientMessage) => void) | undefined
  /** Called when the viewer has violated the protocol; nothing more is read. */
  onBroken: ((error: Error) => void) | undefined
  /** Called after all messages of a chunk. */
  onRead: (() => void) | undefined
  readonly #reader: ClientMessageReader
  #isBroken = false

  constructor(stream: ByteStream) {
    this.stream = stream
    this.#reader = new ClientMessageReader((message) => this.onMessage?.(message))
    stream.onData = (chunk) => this.#receive(chunk)
  }

  /** Sends the ServerInit, and starts reading. */
  begin(serverInit: Buffer): void {
    this.stream.write(serverInit)
    this.stream.paused = false
  }

  /** Called when target and viewer have both confirmed an extension. */
  extended(extension: Extension): void {
    if (extension === 'extended-clipboard') this.#reader.hasExtendedClipboard = true
    if (extension === 'extended-buttons') this.#reader.hasExtendedButtons = true
  }

  #receive(chunk: Uint8Array): void {
    if (this.#isBroken) return
    try {
      this.#reader.feed(chunk)
    } catch (error) {
      this.#isBroken = true
      this.onBroken?.(
        error instanceof MalformedError
          ? new MalformedError(`the viewer broke the RFB protocol: ${error.message}`)
          : new Error('internal error', { cause: error }),
      )
      return
    }
    this.onRead?.()
  }
}
