/**
 * The table of a session's channels: opening by either peer (RFC 4254 5.1) under the session's rights, and
 * numbering. A single channel's work is in channel.ts and its subclasses.
 */

import { Buffer } from 'node:buffer'
import type { Right } from '../../../src/model/rights.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { displayText } from '../../bytes/text.ts'
import { wordsOf } from '../../wording/errors.ts'
import { missingRight } from '../../wording/missing-right.ts'
import type { AdoptedChannel } from '../channel/adopted-channel.ts'
import { MAX_FORWARDED_CHANNELS, MAX_SESSION_CHANNELS } from '../channel/limits.ts'
import { buildChannelOpen, buildChannelOpenFailure, buildClose } from '../codec/build.ts'
import {
  type ChannelOpen,
  MSG,
  OPEN_FAILURE,
  type OpenFailureReason,
  parseChannelOpen,
  parseChannelOpenConfirmation,
  parseChannelOpenFailure,
  recipientOf,
} from '../codec/messages.ts'
import { isRight, ruleOf } from '../policy/decisions.ts'
import type { Channel, ChannelHost, Opened } from './channel.ts'
import type { ForwardedChannel } from './forwarding-channel.ts'
import { type Grants, openByClient, openByTarget } from './forwarding-opens.ts'
import type { GlobalRequests } from './forwarding-requests.ts'
import { SessionChannel } from './session-channel.ts'

const NOTHING = new Uint8Array(0)

export type Peer = 'client' | 'target'

export class Channels {
  readonly #host: ChannelHost
  readonly #requests: GlobalRequests
  readonly #channels = new Map<number, Channel>()
  readonly #grants: Grants = {
    x11: () => this.#sessions().flatMap(({ x11 }) => x11 ?? []),
    agent: () => this.#sessions().some(({ hasAgent }) => hasAgent),
  }
  readonly #firstId: number
  #nextId: number
  #noMoreSessions = false

  /** `firstId`: the lowest free number. `requests` knows the listeners granted on the target. */
  constructor(host: ChannelHost, requests: GlobalRequests, firstId: number) {
    this.#host = host
    this.#requests = requests
    this.#firstId = firstId
    this.#nextId = firstId
  }

  get size(): number {
    return this.#channels.size
  }

  get(id: number): Channel | undefined {
    return this.#channels.get(id)
  }

  /** Returns a copy of the list: channels may be removed meanwhile. */
  all(): Channel[] {
    return [...this.#channels.values()]
  }

  remove(channel: Channel): void {
    this.#channels.delete(channel.id)
  }

  clear(): void {
    this.#channels.clear()
  }

  /** The client will open no more sessions (OpenSSH's PROTOCOL 2.2); other channels are not affected. */
  endSessions(): void {
    this.#noMoreSessions = true
  }

  /** Connects the channel in which the user has just chosen the target to that target. */
  adopt(channel: AdoptedChannel): void {
    this.#openSession(new SessionChannel(this.#host, channel.id, channel.client, channel))
  }

  /** CHANNEL_OPEN. Throws MalformedError. */
  open(by: Peer, payload: Buffer): void {
    const open = parseChannelOpen(payload)
    const rule = ruleOf(by, 'channel', open.type)
    const { suspension } = this.#host.session
    if (rule === undefined) this.#denyKind(by, open)
    // A session channel may be opened: its program waits.
    else if (by === 'client' && suspension.isOn && isRight(rule))
      this.#refuseSuspended(open, suspension.reason)
    else if (isRight(rule)) this.#openForwarded(by, open, rule)
    else if (this.#noMoreSessions) {
      this.#refuse(by, open, OPEN_FAILURE.administrativelyProhibited, 'no more sessions, as was asked')
    } else if (this.#hasRoom(by, open, this.#sessions().length, MAX_SESSION_CHANNELS)) {
      this.#openSession(new SessionChannel(this.#host, this.#number(), openedOf(open)))
    }
  }

  #refuseSuspended(open: ChannelOpen, why: string): void {
    const reason = `input is suspended: ${why}`
    this.#host.session.denied(kindOf('client', open), reason)
    this.#refuse('client', open, OPEN_FAILURE.administrativelyProhibited, reason)
  }

  /** CHANNEL_OPEN_CONFIRMATION or CHANNEL_OPEN_FAILURE. Throws MalformedError. */
  answered(by: Peer, payload: Buffer): void {
    const id = recipientOf(payload)
    const channel = this.#channels.get(id)
    if (!channel && by === 'client' && id < this.#firstId) {
      this.#late(payload)
      return
    }
    if (!channel || channel.openedBy === by) {
      throw new MalformedError('an answer to a channel that nobody opened')
    }
    if (payload[0] === MSG.channelOpenConfirmation) {
      channel.confirmed(parseChannelOpenConfirmation(payload))
    } else {
      const { reason, description } = parseChannelOpenFailure(payload)
      channel.failed(reason, wordsOf(displayText(description)))
    }
  }

  /** Closes a channel that the lobby opened (as for the user's agent) and gave up before its confirmation. */
  #late(payload: Buffer): void {
    if (payload[0] !== MSG.channelOpenConfirmation) return
    this.#host.client.send(buildClose(parseChannelOpenConfirmation(payload).sender))
  }

  #openSession(channel: SessionChannel): void {
    this.#channels.set(channel.id, channel)
    this.#host.target.send(
      buildChannelOpen({ type: 'session', sender: channel.id, ...channel.offer(), typeData: NOTHING }),
    )
  }

  #openForwarded(by: Peer, open: ChannelOpen, right: Right): void {
    const { session } = this.#host
    const isMissing = !session.rights.has(right)
    if (isMissing && by === 'target') {
      this.#denyKind(by, open)
      return
    }
    const answer = isMissing
      ? { refused: missingRight(right, session.target.device) }
      : by === 'client'
        ? openByClient(open, right, session.options.forwardTo)
        : openByTarget(open, right, this.#requests, this.#grants)
    if ('refused' in answer) {
      const { refused, destination } = answer
      session.denied(by === 'client' ? right : kindOf(by, open), refused, destination)
      this.#refuse(by, open, OPEN_FAILURE.administrativelyProhibited, refused)
    } else if (this.#hasRoom(by, open, this.#forwarded, MAX_FORWARDED_CHANNELS)) {
      const channel = answer.make(this.#host, this.#number(), openedOf(open))
      this.#channels.set(channel.id, channel)
      session.forwards(right, answer.destination).then(
        () => this.#host.guarded(() => this.#begin(by, channel)),
        () => session.stop('failure', 'the audit log cannot be written'),
      )
    }
  }

  /** Input may have been suspended while the audit log was asked. */
  #begin(by: Peer, channel: ForwardedChannel): void {
    const { suspension } = this.#host.session
    if (by === 'client' && suspension.isOn) channel.refuse(`input is suspended: ${suspension.reason}`)
    else channel.begin()
  }

  #sessions(): SessionChannel[] {
    return this.all().filter((channel) => channel instanceof SessionChannel)
  }

  get #forwarded(): number {
    return this.#channels.size - this.#sessions().length
  }

  #hasRoom(by: Peer, open: ChannelOpen, count: number, most: number): boolean {
    if (count < most) return true
    this.#refuse(by, open, OPEN_FAILURE.resourceShortage, `at most ${most} channels of this kind at a time`)
    return false
  }

  #number(): number {
    while (this.#channels.has(this.#nextId)) this.#nextId = (this.#nextId + 1) >>> 0
    return this.#nextId++
  }

  #denyKind(by: Peer, open: ChannelOpen): void {
    const reason = by === 'client' ? 'not allowed here' : 'nobody asked for it'
    this.#host.session.denied(kindOf(by, open), reason)
    const text = 'this kind of channel is not allowed here'
    this.#refuse(by, open, OPEN_FAILURE.administrativelyProhibited, text)
  }

  /** Targets get no reasons. */
  #refuse(by: Peer, open: ChannelOpen, reason: OpenFailureReason, text: string): void {
    const words = by === 'client' ? text : 'not requested'
    this.#host[by].send(buildChannelOpenFailure(open.sender, reason, `sallyport: ${words}`))
  }
}

function openedOf({ sender, window, maxPacket }: ChannelOpen): Opened {
  return { id: sender, window, maxPacket }
}

/** For display: a peer chose this name. */
function kindOf(by: Peer, { type }: ChannelOpen): string {
  const name = displayText(Buffer.from(type, 'latin1'))
  return by === 'client' ? `channel ${name}` : `channel ${name} from the target`
}
