/** One direction of a static virtual channel: assembles whole messages, except those too large to hold. */
import { MalformedError } from '../../bytes/malformed.ts'
import { ChannelAssembler, parseChunk } from '../codec/virtual-channel.ts'

export interface MessageStreamOptions {
  /** Name of the channel, for errors. */
  name: string
  /** Most bytes of a message that is held. */
  limit: number
  /** Receives a whole message, valid during the call only. */
  take: (message: Uint8Array) => void
  /** Handles messages of several chunks. If absent, all messages are held. */
  large?: {
    /** Judges a message by its first bytes and length: hold it, or forward or drop its chunks. */
    judge: (begin: Uint8Array, length: number) => 'hold' | 'pass' | 'drop'
    /** Receives a forwarded chunk with its header; `data` is its part of the message. */
    pass: (chunk: Uint8Array, data: Uint8Array, isLast: boolean) => void
  }
}

export class MessageStream {
  readonly #options: MessageStreamOptions
  readonly #assembler: ChannelAssembler
  /** Verdict on the rest of a message that is not held. */
  #verdict: 'pass' | 'drop' | undefined
  /** Bytes of that message still to come. */
  #left = 0
  #hasBegun = false

  constructor(options: MessageStreamOptions) {
    this.#options = options
    this.#assembler = new ChannelAssembler(options.name, options.limit)
  }

  /** Receives a chunk with its header. Throws MalformedError. */
  receive(chunk: Uint8Array): void {
    if (!this.#verdict) this.#judge(chunk)
    if (this.#verdict) {
      this.#stream(chunk, this.#verdict)
      return
    }
    const message = this.#assembler.feed(chunk)
    if (message) this.#options.take(message)
  }

  #judge(chunk: Uint8Array): void {
    const { large, name } = this.#options
    if (!large || this.#assembler.pending > 0) return
    const parsed = parseChunk(chunk, `channel ${name}`)
    if (!parsed?.isFirst || parsed.isLast) return
    const verdict = large.judge(parsed.data, parsed.length)
    if (verdict === 'hold') return
    this.#verdict = verdict
    this.#left = parsed.length
    this.#hasBegun = false
  }

  #stream(chunk: Uint8Array, verdict: 'pass' | 'drop'): void {
    const { large, name } = this.#options
    const parsed = parseChunk(chunk, `channel ${name}`)
    if (!parsed) return
    if (parsed.isFirst === this.#hasBegun) {
      throw new MalformedError(
        `channel ${name}: the rest of a message was expected, found the begin of another`,
      )
    }
    this.#hasBegun = true
    this.#left -= parsed.data.length
    if (this.#left < 0 || (parsed.isLast && this.#left > 0)) {
      throw new MalformedError(
        `channel ${name}: as many bytes as a message has were expected, found ${Math.abs(this.#left)} ${this.#left < 0 ? 'more' : 'fewer'}`,
      )
    }
    if (parsed.isLast) this.#verdict = undefined
    if (verdict === 'pass') large?.pass(chunk, parsed.data, parsed.isLast)
  }
}
