/**
 * Filters dynamic channels by name. A channel that the target opens under another name is refused as a client
 * would refuse it; data of a channel that is not open is dropped.
 */
import { Buffer } from 'node:buffer'
import {
  buildDynamicClose,
  buildDynamicRefusal,
  DRDYNVC,
  DYNAMIC_PDU_LIMIT,
  type DynamicMessage,
  limitVersion,
  parseDynamic,
} from '../codec/drdynvc.ts'
import { otherSide, type SendChunk, type Side, sendMessage } from './direction.ts'
import { MessageStream } from './message-stream.ts'

/** Channels per session. */
const OPEN_LIMIT = 256

export interface DynamicFilterOptions {
  isAllowed: (name: string) => boolean
  visitor: {
    denied(name: string): void
    opened(name: string): void
    /**
     * Judges data of an open channel: a whole message, or its first part if it continues. Returns false to
     * drop it, or the bytes to send instead. `data` is valid during the call only.
     */
    data(
      from: Side,
      name: string,
      message: DynamicMessage & { kind: 'data' | 'data-first' },
    ): boolean | Uint8Array
  }
  send: SendChunk
}

export class DynamicFilter {
  readonly #options: DynamicFilterOptions
  readonly #streams: Record<Side, MessageStream>
  /** Names by number, of channels that the client was asked to open. */
  readonly #names = new Map<number, string>()
  /** Numbers of channels that the client has confirmed. */
  readonly #open = new Set<number>()

  constructor(options: DynamicFilterOptions) {
    this.#options = options
    const stream = (from: Side) =>
      new MessageStream({
        name: DRDYNVC,
        limit: DYNAMIC_PDU_LIMIT,
        take: (message) => this.#take(from, message),
      })
    this.#streams = { client: stream('client'), target: stream('target') }
  }

  /** Receives a chunk with its header. Throws MalformedError. */
  receive(from: Side, chunk: Uint8Array): void {
    this.#streams[from].receive(chunk)
  }

  /** Closes the client's channels: the session moves to another target, which has others. */
  redirect(): void {
    for (const channel of this.#open) sendMessage(this.#options.send, 'client', buildDynamicClose(channel))
    this.#open.clear()
    this.#names.clear()
  }

  #take(from: Side, whole: Uint8Array): void {
    const { send, visitor } = this.#options
    const message = parseDynamic(whole, from === 'client' ? 'client' : 'server')
    const pass = (bytes: Uint8Array) => sendMessage(send, otherSide(from), bytes)
    switch (message.kind) {
      case 'capabilities':
        pass(limitVersion(whole))
        return
      case 'create':
        if (this.#create(message)) pass(whole)
        return
      case 'created':
        if (this.#created(message)) pass(whole)
        return
      case 'close':
        this.#open.delete(message.channel)
        if (this.#names.delete(message.channel)) pass(whole)
        return
      default: {
        const name = this.#open.has(message.channel) ? this.#names.get(message.channel) : undefined
        const passes = name !== undefined && visitor.data(from, name, message)
        if (passes === true) pass(whole)
        else if (passes) {
          const head = whole.subarray(0, whole.length - message.data.length)
          pass(Buffer.concat([head, passes]))
        }
      }
    }
  }

  #create({ channel, name }: DynamicMessage & { kind: 'create' }): boolean {
    const { isAllowed, send, visitor } = this.#options
    const isNew = !this.#names.has(channel) && this.#names.size < OPEN_LIMIT
    if (!isNew || !isAllowed(name)) {
      visitor.denied(name)
      sendMessage(send, 'target', buildDynamicRefusal(channel))
      return false
    }
    this.#names.set(channel, name)
    return true
  }

  #created({ channel, status }: DynamicMessage & { kind: 'created' }): boolean {
    const name = this.#names.get(channel)
    if (name === undefined || this.#open.has(channel)) return false
    if (status < 0x80000000) {
      this.#open.add(channel)
      this.#options.visitor.opened(name)
    } else this.#names.delete(channel)
    return true
  }
}
