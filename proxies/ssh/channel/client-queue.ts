/** The client's messages on one channel that wait for a decision or for window, in bounded number. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { buildData } from '../codec/build.ts'
import { dataOf, MSG, recipientOf, setDataLength } from '../codec/messages.ts'
import { MAX_QUEUED } from './limits.ts'

/** Size of a buffer that collects small data messages: each typed key arrives as a message of its own. */
const GATHERED = 256

export class ClientQueue {
  #messages: Buffer[] = []
  #bytes = 0
  #data = 0
  /** The buffer behind the last message, with room for more data. */
  #gathered: Buffer | undefined

  get isEmpty(): boolean {
    return this.#messages.length === 0
  }

  /** Bytes of data in the queue: received from the client, not yet sent to the target. */
  get data(): number {
    return this.#data
  }

  /** Bytes of the messages in the queue. */
  get bytes(): number {
    return this.#bytes
  }

  /** Copies `messages`. Throws MalformedError if the queue grows over `most` bytes. */
  push(messages: readonly Buffer[], most: number = MAX_QUEUED): void {
    for (const message of messages) {
      if (!this.#gather(message)) {
        this.#messages.push(this.#kept(message))
        this.#bytes += message.length
        this.#data += dataIn(message)
      }
    }
    if (this.#bytes > most) throw new MalformedError('too many messages before an answer')
  }

  /** Processes the queue in order. `step` returns the part that must keep waiting; it may clear the queue. */
  drain(step: (message: Buffer) => Buffer | undefined): void {
    for (let first = this.#messages[0]; first !== undefined; first = this.#messages[0]) {
      const rest = step(first)
      if (this.#messages[0] !== first || rest === first) return
      if (this.#messages.length === 1) this.#gathered = undefined
      if (rest !== undefined) {
        this.#bytes += rest.length - first.length
        this.#data += dataIn(rest) - dataIn(first)
        this.#messages[0] = rest
        return
      }
      this.#messages.shift()
      this.#bytes -= first.length
      this.#data -= dataIn(first)
    }
  }

  clear(): void {
    this.#messages = []
    this.#bytes = this.#data = 0
    this.#gathered = undefined
  }

  /** Drops all data but the first byte, and keeps the other messages. */
  keepFirst(): void {
    const first = this.#messages.find(([type]) => type === MSG.channelData)
    this.dropData()
    if (!first) return
    this.#messages.unshift(buildData(recipientOf(first), dataOf(first).subarray(0, 1)))
    this.#bytes += this.#messages[0]!.length
    this.#data = 1
  }

  /** Drops the data messages and keeps the others. */
  dropData(): void {
    const rest = this.#messages.filter(([type]) => type !== MSG.channelData)
    this.clear()
    this.#messages = rest
    for (const { length } of rest) this.#bytes += length
  }

  #kept(message: Buffer): Buffer {
    const isSmall = message[0] === MSG.channelData && message.length < GATHERED
    this.#gathered = isSmall ? Buffer.allocUnsafe(GATHERED) : undefined
    if (!this.#gathered) return Buffer.from(message)
    message.copy(this.#gathered)
    return this.#gathered.subarray(0, message.length)
  }

  /** Returns true if `message` was appended to the last message. */
  #gather(message: Buffer): boolean {
    const last = this.#messages.at(-1)
    if (!last || !this.#gathered || message[0] !== MSG.channelData) return false
    const data = dataOf(message)
    if (last.length + data.length > this.#gathered.length) return false
    this.#gathered.set(data, last.length)
    const longer = this.#gathered.subarray(0, last.length + data.length)
    setDataLength(longer)
    this.#messages[this.#messages.length - 1] = longer
    this.#bytes += data.length
    this.#data += data.length
    return true
  }
}

function dataIn(message: Buffer): number {
  return message[0] === MSG.channelData ? dataOf(message).length : 0
}
