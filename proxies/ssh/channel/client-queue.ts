/** Messages of the client on one channel that wait for a decision or for window, in order; their bytes are bounded. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { dataOf, MSG, setDataLength } from '../codec/messages.ts'
import { MAX_QUEUED } from './limits.ts'

/** Bytes of a message into which small ones of data are put together: keys that wait are a message each. */
const GATHERED = 256

export class ClientQueue {
  #messages: Buffer[] = []
  #bytes = 0
  #data = 0
  /** The last message is a view of this, which has room behind it. */
  #gathered: Buffer | undefined

  get isEmpty(): boolean {
    return this.#messages.length === 0
  }

  /** Bytes of data among them: the client has sent them, and the target has not got them. */
  get data(): number {
    return this.#data
  }

  /** They are copied. Throws MalformedError when it is too much. */
  push(messages: readonly Buffer[]): void {
    for (const message of messages) {
      if (!this.#gather(message)) {
        this.#messages.push(this.#kept(message))
        this.#bytes += message.length
        this.#data += dataIn(message)
      }
    }
    if (this.#bytes > MAX_QUEUED) throw new MalformedError('too many messages before an answer')
  }

  /** Goes on with what waits: `step` answers with what of a message has to wait again, and may clear the queue. */
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

  /** Forgets the data, and keeps the rest. */
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

  /** True: it has become a part of the last message. */
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
