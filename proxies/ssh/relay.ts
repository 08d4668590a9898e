/**
 * What happens between the client's leg and the target's: the table of channels, what concerns the connection
 * as a whole, and the back-pressure between the two legs and the recording. Every connection-layer message
 * (RFC 4254) passes here once; what one channel does with it is in channel.ts and its subclasses.
 */
import { Buffer } from 'node:buffer'
import type { Right } from '../../src/model/rights.ts'
import type { Channel, ChannelHost, Opened } from './channel.ts'
import { buildChannelOpen, buildChannelOpenFailure, buildRequestFailure } from './codec/build.ts'
import {
  type ChannelOpen,
  type GlobalRequest,
  MSG,
  OPEN_FAILURE,
  type OpenFailureReason,
  parseChannelOpen,
  parseChannelOpenConfirmation,
  parseChannelOpenFailure,
  parseGlobalRequest,
  recipientOf,
} from './codec/messages.ts'
import { displayText, MalformedError } from './codec/reader.ts'
import { isRight, ruleOf } from './decisions.ts'
import { end, farewell } from './farewell.ts'
import { type Grants, openByClient, openByTarget } from './forwarding/opens.ts'
import { GlobalRequests } from './forwarding/requests.ts'
import { Keepalive } from './keepalive.ts'
import { MAX_CHANNELS } from './limits.ts'
import type { AdoptedChannel } from './lobby.ts'
import { missingRight } from './request.ts'
import type { SessionResult, SshSession } from './session.ts'
import { SessionChannel } from './session-channel.ts'
import { TimeLimits } from './time-limits.ts'
import type { Transport } from './transport.ts'

const NOTHING = new Uint8Array(0)

type Peer = 'client' | 'target'

function openedOf({ sender, window, maxPacket }: ChannelOpen): Opened {
  return { id: sender, window, maxPacket }
}

/** A name that a peer chose, for people. */
function nameText(name: string): string {
  return displayText(Buffer.from(name, 'latin1'))
}

export class Relay implements ChannelHost {
  readonly client: Transport
  readonly target: Transport
  readonly session: SshSession
  readonly #channels = new Map<number, Channel>()
  readonly #keepalive: Keepalive
  readonly #limits: TimeLimits
  readonly #requests: GlobalRequests
  readonly #grants: Grants = {
    x11: () => this.#sessions().flatMap(({ x11 }) => x11 ?? []),
    agent: () => this.#sessions().some(({ hasAgent }) => hasAgent),
  }
  readonly #onEnd: () => void
  #nextId: number
  #deciding = 0
  #noMoreSessions = false
  #ended = false

  /**
   * `firstId`: the lowest channel number that the lobby has not given to the client. `onEnd`: both legs are closing
   * and the session is sealed and accounted for.
   */
  constructor(client: Transport, target: Transport, session: SshSession, firstId: number, onEnd: () => void) {
    this.#nextId = firstId
    this.#onEnd = onEnd
    this.client = client
    this.target = target
    this.session = session
    this.#requests = new GlobalRequests(this)
    this.#keepalive = new Keepalive([
      { transport: client, onSilent: () => this.#over('failure', 'the client no longer answers') },
      {
        transport: target,
        onSilent: () => this.#over('failure', 'the target no longer answers'),
        onAsked: () => this.#requests.expectAnswer(),
      },
    ])
    this.#limits = new TimeLimits(session.options, {
      get signs() {
        return session.signs
      },
      warn: (text) => {
        for (const channel of this.#channels.values()) channel.notice(text)
      },
      end: (reason) => this.#over('failure', reason),
    })
    client.onMessage = (payload) => this.#handle(payload, this.#fromClient, 'the client')
    target.onMessage = (payload) => this.#handle(payload, this.#fromTarget, 'the target')
    client.onDrain = target.onDrain = session.onDrain = () => this.#balance()
    client.onClose = () => this.#over('success')
    target.onClose = () => this.#targetGone()
    session.onStop = (result, reason) => this.#over(result, reason)
    // A leg may have ended while nobody was listening.
    if (client.closed) this.#over('success')
    else if (target.closed) this.#targetGone()
  }

  /** What the client has asked for while there was no target. */
  replay(payload: Buffer): void {
    this.#handle(payload, this.#fromClient, 'the client')
  }

  /** The channel in which the user has just chosen the target: it becomes one to that target. */
  adopt(channel: AdoptedChannel): void {
    this.#openSession(new SessionChannel(this, channel.id, channel.client, channel))
  }

  gone(channel: Channel): void {
    this.#channels.delete(channel.id)
  }

  setDeciding(deciding: boolean): void {
    this.#deciding += deciding ? 1 : -1
    this.#balance()
  }

  guarded(work: () => void): void {
    if (this.#ended) return
    try {
      work()
    } catch (error) {
      this.#broken(error, 'the client')
      return
    }
    this.#balance()
  }

  #handle(payload: Buffer, handler: (payload: Buffer) => void, peer: string): void {
    if (this.#ended) return
    try {
      handler.call(this, payload)
    } catch (error) {
      this.#broken(error, peer)
      return
    }
    this.#balance()
  }

  #broken(error: unknown, peer: string): void {
    if (error instanceof MalformedError)
      this.#over('failure', `${peer} broke the SSH protocol: ${error.message}`)
    else this.#over('failure', 'internal error')
  }

  #fromClient(payload: Buffer): void {
    switch (payload[0]) {
      case MSG.globalRequest:
        this.#globalRequest(parseGlobalRequest(payload))
        return
      case MSG.channelOpen:
        this.#open('client', parseChannelOpen(payload))
        return
      case MSG.requestSuccess:
      case MSG.requestFailure:
        // Answers to keepalives: that they came is what counts.
        return
      case MSG.channelOpenConfirmation:
      case MSG.channelOpenFailure:
        this.#answeredOpen('client', payload)
        return
      default:
        this.#channels.get(recipientOf(payload))?.fromClient(payload)
    }
  }

  #fromTarget(payload: Buffer): void {
    switch (payload[0]) {
      case MSG.globalRequest:
        // Answers come from here, if only failures: decisions.ts says why.
        if (parseGlobalRequest(payload).wantReply) this.target.send(buildRequestFailure())
        return
      case MSG.channelOpen:
        this.#open('target', parseChannelOpen(payload))
        return
      case MSG.requestSuccess:
      case MSG.requestFailure:
        this.#requests.answered(payload[0] === MSG.requestSuccess, payload)
        return
      case MSG.channelOpenConfirmation:
      case MSG.channelOpenFailure:
        this.#answeredOpen('target', payload)
        return
      default: {
        const id = recipientOf(payload)
        const channel = this.#channels.get(id)
        if (!channel) throw new MalformedError(`there is no channel ${id}`)
        channel.fromTarget(payload)
      }
    }
  }

  #globalRequest(request: GlobalRequest): void {
    const { name, wantReply } = request
    const rule = ruleOf('client', 'global request', name)
    if (rule !== undefined && isRight(rule)) {
      this.#requests.forward(request, rule)
      return
    }
    const isEnd = name === 'no-more-sessions@openssh.com'
    if (isEnd) this.#noMoreSessions = true
    if (rule === undefined) this.session.denied(nameText(name), 'not allowed here')
    this.#requests.answer(wantReply, isEnd)
  }

  #open(by: Peer, open: ChannelOpen): void {
    const rule = ruleOf(by, 'channel', open.type)
    const known = rule !== undefined && isRight(rule) ? rule : undefined
    if (open.type === 'session' && rule !== undefined) {
      if (this.#noMoreSessions) {
        this.#refuseOpen(by, open, OPEN_FAILURE.administrativelyProhibited, 'no more sessions, as was asked')
      } else if (this.#hasRoom(by, open)) {
        this.#openSession(new SessionChannel(this, this.#number(), openedOf(open)))
      }
    } else if (known === undefined || (by === 'target' && !this.session.rights.has(known))) {
      const reason = by === 'client' ? 'not allowed here' : 'nobody asked for it'
      this.#deny(
        by,
        open,
        `channel ${nameText(open.type)}`,
        reason,
        'this kind of channel is not allowed here',
      )
    } else {
      this.#openForwarded(by, open, known)
    }
  }

  #openSession(channel: SessionChannel): void {
    this.#channels.set(channel.id, channel)
    this.target.send(
      buildChannelOpen({ type: 'session', sender: channel.id, ...channel.offer(), typeData: NOTHING }),
    )
  }

  #openForwarded(by: Peer, open: ChannelOpen, right: Right): void {
    const { session } = this
    const answer = !session.rights.has(right)
      ? { refused: missingRight(right, session.target.device) }
      : by === 'client'
        ? openByClient(open, right, session.options.forwardTo)
        : openByTarget(open, right, this.#requests, this.#grants)
    if ('refused' in answer) {
      const what = by === 'client' ? right : `channel ${open.type}`
      this.#deny(by, open, what, answer.refused, answer.refused, answer.destination)
    } else if (this.#hasRoom(by, open)) {
      const channel = answer.make(this, this.#number(), openedOf(open))
      this.#channels.set(channel.id, channel)
      session.forwards(right, answer.destination).then(
        () => this.guarded(() => channel.begin()),
        () => session.stop('failure', 'the audit log cannot be written'),
      )
    }
  }

  #answeredOpen(by: Peer, payload: Buffer): void {
    const channel = this.#channels.get(recipientOf(payload))
    if (!channel || channel.openedBy === by) {
      throw new MalformedError('an answer to a channel that nobody opened')
    }
    if (payload[0] === MSG.channelOpenConfirmation) {
      channel.confirmed(parseChannelOpenConfirmation(payload))
    } else {
      const { reason, description } = parseChannelOpenFailure(payload)
      channel.failed(reason, displayText(description))
    }
  }

  #sessions(): SessionChannel[] {
    return [...this.#channels.values()].filter((channel) => channel instanceof SessionChannel)
  }

  #hasRoom(by: Peer, open: ChannelOpen): boolean {
    if (this.#channels.size < MAX_CHANNELS) return true
    this.#refuseOpen(by, open, OPEN_FAILURE.resourceShortage, `at most ${MAX_CHANNELS} channels at a time`)
    return false
  }

  #number(): number {
    while (this.#channels.has(this.#nextId)) this.#nextId = (this.#nextId + 1) >>> 0
    return this.#nextId++
  }

  #deny(by: Peer, open: ChannelOpen, what: string, reason: string, text: string, destination?: string): void {
    this.session.denied(by === 'client' ? what : `${what} from the target`, reason, destination)
    this.#refuseOpen(
      by,
      open,
      OPEN_FAILURE.administrativelyProhibited,
      by === 'client' ? text : 'not requested',
    )
  }

  #refuseOpen(by: Peer, open: ChannelOpen, reason: OpenFailureReason, text: string): void {
    const leg = by === 'client' ? this.client : this.target
    leg.send(buildChannelOpenFailure(open.sender, reason, `sallyport: ${text}`))
  }

  /** Each side is read only while the other, and the recording, take what it sends. */
  #balance(): void {
    if (this.#ended) return
    const full = this.session.isFull
    this.target.paused = full || this.client.congested || this.target.flooded
    this.client.paused = full || this.#deciding > 0 || this.target.congested || this.client.flooded
  }

  #targetGone(): void {
    // A target that closes in order has closed its channels before; what is still open was cut off.
    const cut = this.#channels.size > 0
    this.#over(cut ? 'failure' : 'success', cut ? 'the target closed the connection' : undefined)
  }

  #over(result: SessionResult, reason?: string): void {
    if (this.#ended) return
    this.#ended = true
    this.#keepalive.stop()
    this.#limits.stop()
    if (reason !== undefined) for (const channel of [...this.#channels.values()]) channel.refuse(reason)
    for (const channel of this.#channels.values()) channel.end()
    this.#channels.clear()
    this.client.paused = this.target.paused = false
    end(this.target)
    this.target.onClose = undefined
    const clientClosed = new Promise<void>((resolve) => {
      this.client.onClose = resolve
      if (this.client.closed) resolve()
    })
    if (reason === undefined) end(this.client)
    else farewell(this.client)
    Promise.allSettled([this.session.end(result, reason), clientClosed]).then(this.#onEnd)
  }
}
