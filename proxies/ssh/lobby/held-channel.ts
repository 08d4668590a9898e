/**
 * The client's first session channel, held while the bastion must know whether the client forwards its agent.
 * Clients announce that on an open channel, so the channel is confirmed before there is a target. Preparatory
 * requests are kept; the main request and all later messages wait unanswered for the target.
 */
import { Buffer } from 'node:buffer'
import type { Right } from '../../../src/model/rights.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import type { AdoptedChannel } from '../channel/adopted-channel.ts'
import { MAX_CHANNEL_PACKET, MAX_QUEUED } from '../channel/limits.ts'
import {
  buildChannelFailure,
  buildChannelOpenConfirmation,
  buildChannelRequest,
  buildChannelSuccess,
  buildClose,
  buildEof,
  buildExitStatus,
  buildExtendedData,
} from '../codec/build.ts'
import {
  type ChannelOpen,
  type ChannelRequest,
  MSG,
  parseChannelRequest,
  windowAdjustOf,
} from '../codec/messages.ts'
import { parseEnv } from '../codec/requests.ts'
import { isRight, ruleOf } from '../policy/decisions.ts'
import { mayPass } from '../policy/environment.ts'
import { MAIN_REQUESTS } from '../policy/request.ts'
import { MAIN_REQUEST_MS } from './limits.ts'

/** RFC 4254 5.2. */
const LARGEST_WINDOW = 0xffffffff

/** The rights and limits of the coming session that apply to preparatory requests. */
export interface Allowance {
  has: (right: Right) => boolean
  /** False if a certificate forbids terminals. */
  terminal: boolean
}

export interface HeldOptions {
  id: number
  open: ChannelOpen
  send: (payload: Buffer) => void
  may: Allowance
  /** Called once the agent request has arrived (true), or a main request without it (false). */
  onKnown: (isForwarded: boolean) => void
  /** Called when the client has closed the channel. */
  onClosed: () => void
}

export class HeldChannel {
  readonly id: number
  readonly #options: HeldOptions
  readonly #clientId: number
  #window: number
  #kept: Buffer[] = []
  #keptBytes = 0
  /** Pending replies to the client's main request and later requests. */
  #owed = 0
  #hasTerminal = false
  #hasMain = false
  #hasAgent = false
  #isKnown = false
  /** Runs from the agent request until the main request. */
  #patience: NodeJS.Timeout | undefined
  #isOver = false
  /** Shown after the client's main request if there is no target. */
  #lastText: string | undefined

  constructor(options: HeldOptions) {
    this.#options = options
    this.id = options.id
    this.#clientId = options.open.sender
    this.#window = options.open.window
    // No window: data waits until the target accepts it.
    options.send(
      buildChannelOpenConfirmation({
        recipient: this.#clientId,
        sender: options.id,
        window: 0,
        maxPacket: MAX_CHANNEL_PACKET,
      }),
    )
  }

  /** Receives a message of the channel. Throws MalformedError. */
  message(payload: Buffer): void {
    switch (payload[0]) {
      case MSG.channelData:
        throw new MalformedError('more data than the window allows')
      case MSG.channelWindowAdjust:
        this.#window += windowAdjustOf(payload)
        if (this.#window > LARGEST_WINDOW) throw new MalformedError('the window is over 2^32-1')
        return
      case MSG.channelRequest:
        if (!this.#isOver) this.#request(payload)
        return
      case MSG.channelEof:
        this.#keep(Buffer.from(payload))
        return
      case MSG.channelClose:
        if (!this.#isOver) this.#options.send(buildClose(this.#clientId))
        this.#isOver = true
        this.known(false)
        this.#options.onClosed()
        return
      default:
        return
    }
  }

  /** Reports whether the agent is forwarded, unless that is known already. */
  known(isForwarded: boolean): void {
    clearTimeout(this.#patience)
    if (this.#isKnown) return
    this.#isKnown = true
    this.#options.onKnown(isForwarded)
  }

  /** Closes the channel for want of a target, showing the text as soon as the client reads. */
  close(text: string): void {
    this.#lastText = text
    if (this.#hasMain) this.#leave(text)
  }

  /** Hands the channel over to the relay; do not use it afterwards. Returns undefined if it is closed. */
  handOver(): AdoptedChannel | undefined {
    if (this.#isOver) return undefined
    this.#isOver = true
    this.known(false)
    return {
      id: this.id,
      client: { id: this.#clientId, window: this.#window, maxPacket: this.#options.open.maxPacket },
      credit: 0,
      isAnswered: false,
      messages: this.#kept,
    }
  }

  #request(payload: Buffer): void {
    const request = parseChannelRequest(payload)
    if (this.#hasMain || MAIN_REQUESTS.has(request.type)) {
      this.#hasMain = true
      if (request.wantReply) this.#owed++
      this.#keep(Buffer.from(payload))
      this.known(this.#hasAgent)
      if (this.#lastText !== undefined) this.#leave(this.#lastText)
      return
    }
    const isGood = this.#isGood(request)
    // Some clients wait for the reply.
    if (request.wantReply)
      this.#options.send((isGood ? buildChannelSuccess : buildChannelFailure)(this.#clientId))
    if (isGood) this.#keep(buildChannelRequest(this.id, request.type, false, request.data))
    if (request.type !== 'auth-agent-req@openssh.com') return
    // paramiko accepts the agent's channel only a moment after its agent request.
    this.#hasAgent = true
    this.#patience ??= setTimeout(() => this.known(true), MAIN_REQUEST_MS)
  }

  #isGood(request: ChannelRequest): boolean {
    if (request.type === 'auth-agent-req@openssh.com') return true
    if (request.type === 'env') {
      const { name, value } = parseEnv(request.data)
      return mayPass(name, value)
    }
    const { may } = this.#options
    if (request.type === 'pty-req') {
      // A client that falsely believes it has a terminal would wait for its echo.
      if (!may.terminal || this.#hasTerminal) return false
      this.#hasTerminal = true
    }
    const rule = ruleOf('client', 'channel request', request.type)
    return rule !== undefined && (!isRight(rule) || may.has(rule))
  }

  #keep(message: Buffer): void {
    this.#keptBytes += message.length
    if (this.#keptBytes > MAX_QUEUED) throw new MalformedError('too many messages before an answer')
    this.#kept.push(message)
  }

  #leave(text: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.known(false)
    const { send } = this.#options
    // The client waits for replies before it reads.
    for (; this.#owed > 0; this.#owed--) send(buildChannelSuccess(this.#clientId))
    const limit = Math.min(this.#window, this.#options.open.maxPacket, MAX_CHANNEL_PACKET)
    const bytes = Buffer.from(text).subarray(0, limit)
    if (bytes.length > 0) send(buildExtendedData(this.#clientId, bytes))
    send(buildExitStatus(this.#clientId, 255))
    send(buildEof(this.#clientId))
    send(buildClose(this.#clientId))
  }
}
