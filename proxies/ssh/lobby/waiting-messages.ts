/** Copies of a client's messages that wait for its target, in their order. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { MAX_QUEUED } from '../channel/limits.ts'
import { type ChannelOpen, MSG, parseChannelOpen } from '../codec/messages.ts'

export class WaitingMessages {
  #messages: Buffer[] = []
  #bytes = 0

  get count(): number {
    return this.#messages.length
  }

  /** Number of channels for programs. */
  get sessions(): number {
    return this.#messages.filter(isSession).length
  }

  /** Keeps a copy: the next read overwrites the message. Throws MalformedError. */
  add(payload: Buffer): void {
    this.#bytes += payload.length
    if (this.#bytes > MAX_QUEUED) throw new MalformedError('too many messages before an answer')
    this.#messages.push(Buffer.from(payload))
  }

  /** Returns and removes all. */
  take(): Buffer[] {
    const messages = this.#messages
    this.#messages = []
    this.#bytes = 0
    return messages
  }

  /** Returns and removes the first request for a session channel, or returns undefined if there is none. */
  takeSession(): ChannelOpen | undefined {
    const index = this.#messages.findIndex(isSession)
    if (index === -1) return undefined
    const [message] = this.#messages.splice(index, 1)
    this.#bytes -= message!.length
    return parseChannelOpen(message!)
  }
}

function isSession(message: Buffer): boolean {
  return message[0] === MSG.channelOpen && parseChannelOpen(message).type === 'session'
}
