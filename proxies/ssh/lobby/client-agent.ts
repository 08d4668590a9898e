/**
 * The user's own agent, reached through a channel that the bastion opens to the client
 * (`auth-agent@openssh.com`). Requests run one at a time, each with a time limit. Any error of the agent
 * closes this channel only.
 */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { MAX_CHANNEL_PACKET } from '../channel/limits.ts'
import {
  type AgentKey,
  AgentMessages,
  buildRequestIdentities,
  buildSignRequest,
  parseIdentities,
  parseSignature,
} from '../codec/agent.ts'
import { buildChannelOpen, buildClose, buildData, buildWindowAdjust } from '../codec/build.ts'
import { dataOf, MSG, parseChannelOpenConfirmation, windowAdjustOf } from '../codec/messages.ts'
import { AGENT_ANSWER_MS, MAX_AGENT_KEYS } from './limits.ts'

const WINDOW = 64 * 1024
/** RFC 4254 5.2. */
const LARGEST_WINDOW = 0xffffffff
const NOTHING = new Uint8Array(0)

/** The agent cannot be used; the message is for the user. */
export class AgentError extends Error {
  override name = 'AgentError'
}

interface Question {
  answered(message: Buffer): void
  failed(error: AgentError): void
  timer: NodeJS.Timeout
}

export class ClientAgent {
  readonly id: number
  readonly #send: (payload: Buffer) => void
  readonly #messages = new AgentMessages()
  #peer: { id: number; window: number; maxPacket: number } | undefined
  #unsent: Uint8Array = NOTHING
  #question: Question | undefined
  #closedTo = false
  #over = false

  /** Opens the channel. `id`: its number, unique on the connection. */
  constructor(id: number, send: (payload: Buffer) => void) {
    this.id = id
    this.#send = send
    send(
      buildChannelOpen({
        type: 'auth-agent@openssh.com',
        sender: id,
        window: WINDOW,
        maxPacket: MAX_CHANNEL_PACKET,
        typeData: NOTHING,
      }),
    )
  }

  /** Returns the usable keys of the agent, at most `MAX_AGENT_KEYS`. Throws AgentError. */
  async keys(): Promise<AgentKey[]> {
    const answer = await this.#ask(buildRequestIdentities())
    return this.#understood(() => parseIdentities(answer)).slice(0, MAX_AGENT_KEYS)
  }

  /** Returns the signature field over `data`, or undefined if the agent refused. Throws AgentError. */
  async sign(key: AgentKey, data: Uint8Array): Promise<Buffer | undefined> {
    const answer = await this.#ask(buildSignRequest(key, data))
    return this.#understood(() => parseSignature(answer, key))
  }

  /** Receives a message of the channel. Throws MalformedError if it breaks the connection protocol. */
  message(payload: Buffer): void {
    switch (payload[0]) {
      case MSG.channelOpenConfirmation: {
        if (this.#peer) throw new MalformedError('the channel was confirmed already')
        const { sender, window, maxPacket } = parseChannelOpenConfirmation(payload)
        this.#peer = { id: sender, window, maxPacket }
        if (this.#over) this.close()
        else this.#flush()
        return
      }
      case MSG.channelOpenFailure:
        if (this.#peer) throw new MalformedError('the channel was confirmed already')
        this.#end(new AgentError('the client refused to open a channel to its agent'))
        return
      case MSG.channelWindowAdjust:
        if (!this.#peer) throw new MalformedError('a message before the confirmation')
        this.#peer.window += windowAdjustOf(payload)
        if (this.#peer.window > LARGEST_WINDOW) throw new MalformedError('the window is over 2^32-1')
        this.#flush()
        return
      case MSG.channelData:
        this.#heard(dataOf(payload))
        return
      case MSG.channelEof:
      case MSG.channelClose:
        this.#end(new AgentError('the agent broke off'))
        this.close()
        return
      default:
        return
    }
  }

  /** Closes the channel; a request under way fails. */
  close(): void {
    this.#end(new AgentError('the agent is not asked any more'))
    if (!this.#peer || this.#closedTo) return
    this.#closedTo = true
    this.#send(buildClose(this.#peer.id))
  }

  #heard(data: Uint8Array): void {
    if (!this.#peer) throw new MalformedError('a message before the confirmation')
    if (WINDOW < data.length) throw new MalformedError('more data than the window allows')
    if (this.#over) return
    try {
      if (!this.#question) throw new MalformedError('the agent spoke without being asked')
      const answer = this.#messages.push(data)
      this.#send(buildWindowAdjust(this.#peer.id, data.length))
      if (answer) this.#settle()?.answered(answer)
    } catch (error) {
      this.#broken(error)
    }
  }

  #understood<T>(parse: () => T): T {
    try {
      return parse()
    } catch (error) {
      throw this.#broken(error)
    }
  }

  /** An agent's error is not the client's breach of SSH. */
  #broken(error: unknown): AgentError {
    if (!(error instanceof MalformedError)) throw error
    const flaw = new AgentError(`the agent breaks its protocol: ${error.message}`)
    this.#end(flaw)
    this.close()
    return flaw
  }

  #ask(message: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#over || this.#question) {
        reject(new AgentError('the agent cannot be asked'))
        return
      }
      const timer = setTimeout(() => {
        this.#end(new AgentError(`the agent did not answer in ${AGENT_ANSWER_MS / 1000} s`))
        this.close()
      }, AGENT_ANSWER_MS)
      this.#question = { answered: resolve, failed: reject, timer }
      this.#unsent = message
      this.#flush()
    })
  }

  /** Sends as much of the request as the client accepts. */
  #flush(): void {
    const peer = this.#peer
    if (!peer || this.#over) return
    while (this.#unsent.length > 0) {
      const size = Math.min(this.#unsent.length, peer.window, peer.maxPacket, MAX_CHANNEL_PACKET)
      if (size === 0) return
      this.#send(buildData(peer.id, this.#unsent.subarray(0, size)))
      peer.window -= size
      this.#unsent = this.#unsent.subarray(size)
    }
  }

  #settle(): Question | undefined {
    const question = this.#question
    this.#question = undefined
    clearTimeout(question?.timer)
    return question
  }

  #end(error: AgentError): void {
    if (this.#over) return
    this.#over = true
    this.#settle()?.failed(error)
  }
}
