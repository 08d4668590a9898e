/** The viewer's connection from its ServerInit on: its messages go to whoever shows it something just now. */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import { type ClientMessage, ClientMessageReader } from '../codec/client-messages.ts'
import type { Extension } from './downstream.ts'

export class Viewer {
  readonly stream: ByteStream
  /** Bytes in a message are valid during the call only; it may throw MalformedError. */
  onMessage: ((message: ClientMessage) => void) | undefined
  /** It has broken the protocol, and nothing more is read of it. */
  onBroken: ((error: Error) => void) | undefined
  /** All of what came together has been taken. */
  onRead: (() => void) | undefined
  readonly #reader: ClientMessageReader
  #isBroken = false

  constructor(stream: ByteStream) {
    this.stream = stream
    this.#reader = new ClientMessageReader((message) => this.onMessage?.(message))
    stream.onData = (chunk) => this.#receive(chunk)
  }

  /** Sends the ServerInit: from here on it is read. */
  begin(serverInit: Buffer): void {
    this.stream.write(serverInit)
    this.stream.paused = false
  }

  /** Target and viewer have both said that they know it. */
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
