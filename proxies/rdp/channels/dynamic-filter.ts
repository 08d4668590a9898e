/**
 * Dynamic channels between a client and a target, held to a list of names: what the target opens under another name is
 * refused as a client would refuse it, and what goes through a channel that is not open stays here.
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

/** Channels of one session. */
const OPEN_LIMIT = 256

export interface DynamicFilterOptions {
  isAllowed: (name: string) => boolean
  visitor: {
    denied(name: string): void
    opened(name: string): void
    /**
     * What passes in a channel that is open, or only its begin where it goes on in other messages; false: it stays
     * here; bytes pass in its place. Valid during the call only.
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
  /** Names by number: of those that the client has been asked for. */
  readonly #names = new Map<number, string>()
  /** Numbers of those that the client has confirmed. */
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

  /** A chunk with its header. Throws MalformedError. */
  receive(from: Side, chunk: Uint8Array): void {
    this.#streams[from].receive(chunk)
  }

  /** The target is left for another one: the client is told that its channels are closed. */
  close(): void {
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
