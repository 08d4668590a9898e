/**
 * What happens between the client's leg and the target's: the table of channels, what concerns the connection
 * as a whole, and the back-pressure between the two legs and the recording. Every connection-layer message
 * (RFC 4254) passes here once; what one channel does with it is in channel.ts and its subclasses.
 */
import { Buffer } from 'node:buffer'
import type { Channel, ChannelHost } from './channel.ts'
import {
  buildChannelOpen,
  buildChannelOpenFailure,
  buildRequestFailure,
  buildRequestSuccess,
} from './codec/build.ts'
import {
  type ChannelOpen,
  MSG,
  OPEN_FAILURE,
  parseChannelOpen,
  parseChannelOpenConfirmation,
  parseChannelOpenFailure,
  parseGlobalRequest,
  recipientOf,
} from './codec/messages.ts'
import { displayText, MalformedError } from './codec/reader.ts'
import { end, farewell } from './farewell.ts'
import { Keepalive } from './keepalive.ts'
import { MAX_CHANNELS } from './limits.ts'
import type { AdoptedChannel } from './lobby.ts'
import type { SessionResult, SshSession } from './session.ts'
import { SessionChannel } from './session-channel.ts'
import { TimeLimits } from './time-limits.ts'
import type { Transport } from './transport.ts'

const NOTHING = new Uint8Array(0)

export class Relay implements ChannelHost {
  readonly client: Transport
  readonly target: Transport
  readonly session: SshSession
  readonly #channels = new Map<number, Channel>()
  readonly #keepalive: Keepalive
  readonly #limits: TimeLimits
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
    this.#keepalive = new Keepalive([
      { transport: client, onSilent: () => this.#over('failure', 'the client no longer answers') },
      { transport: target, onSilent: () => this.#over('failure', 'the target no longer answers') },
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

  /** CHANNEL_OPEN of the client, also those that waited until the target was connected. */
  open(open: ChannelOpen): void {
    if (open.type !== 'session') {
      this.session.denied(`channel ${displayText(Buffer.from(open.type, 'latin1'))}`, 'not allowed here')
      this.#refuseOpen(
        open,
        OPEN_FAILURE.administrativelyProhibited,
        'this kind of channel is not allowed here',
      )
    } else if (this.#noMoreSessions) {
      this.#refuseOpen(open, OPEN_FAILURE.administrativelyProhibited, 'no more sessions, as was asked')
    } else if (this.#channels.size >= MAX_CHANNELS) {
      this.#refuseOpen(open, OPEN_FAILURE.resourceShortage, `at most ${MAX_CHANNELS} channels at a time`)
    } else {
      while (this.#channels.has(this.#nextId)) this.#nextId = (this.#nextId + 1) >>> 0
      const client = { id: open.sender, window: open.window, maxPacket: open.maxPacket }
      this.#add(new SessionChannel(this, this.#nextId++, client))
    }
  }

  /** The channel in which the user has just chosen the target: it becomes one to that target. */
  adopt(channel: AdoptedChannel): void {
    this.#add(new SessionChannel(this, channel.id, channel.client, channel))
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

  #add(channel: Channel): void {
    this.#channels.set(channel.id, channel)
    this.target.send(
      buildChannelOpen({ type: 'session', sender: channel.id, ...channel.offer(), typeData: NOTHING }),
    )
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
      case MSG.globalRequest: {
        const request = parseGlobalRequest(payload)
        if (request.name === 'no-more-sessions@openssh.com') this.#noMoreSessions = true
        else if (request.name !== 'keepalive@openssh.com')
          this.session.denied(displayText(Buffer.from(request.name, 'latin1')), 'not allowed here')
        // All are answered here and at once, so the order of answers is that of the requests (RFC 4254 4).
        if (request.wantReply) {
          this.client.send(
            this.#noMoreSessions && request.name.startsWith('no-more')
              ? buildRequestSuccess()
              : buildRequestFailure(),
          )
        }
        return
      }
      case MSG.channelOpen:
        this.open(parseChannelOpen(payload))
        return
      case MSG.requestSuccess:
      case MSG.requestFailure:
        // Answers to keepalives: that they came is what counts.
        return
      case MSG.channelOpenConfirmation:
      case MSG.channelOpenFailure:
        throw new MalformedError('an answer to a channel that nobody opened')
      default:
        this.#channels.get(recipientOf(payload))?.fromClient(payload)
    }
  }

  #fromTarget(payload: Buffer): void {
    switch (payload[0]) {
      case MSG.globalRequest:
        // Among them hostkeys-00: the target's keys are none of the client's business.
        if (parseGlobalRequest(payload).wantReply) this.target.send(buildRequestFailure())
        return
      case MSG.channelOpen: {
        const open = parseChannelOpen(payload)
        this.session.denied(
          `channel ${displayText(Buffer.from(open.type, 'latin1'))} from the target`,
          'nobody asked for it',
        )
        this.target.send(
          buildChannelOpenFailure(open.sender, OPEN_FAILURE.administrativelyProhibited, 'not requested'),
        )
        return
      }
      case MSG.requestSuccess:
      case MSG.requestFailure:
        return
      case MSG.channelOpenConfirmation: {
        const confirmation = parseChannelOpenConfirmation(payload)
        this.#ofTarget(confirmation.recipient).confirmed(confirmation)
        return
      }
      case MSG.channelOpenFailure: {
        const failure = parseChannelOpenFailure(payload)
        this.#ofTarget(failure.recipient).failed(failure.reason, displayText(failure.description))
        return
      }
      default:
        this.#ofTarget(recipientOf(payload)).fromTarget(payload)
    }
  }

  #ofTarget(id: number): Channel {
    const channel = this.#channels.get(id)
    if (!channel) throw new MalformedError(`there is no channel ${id}`)
    return channel
  }

  #refuseOpen(
    open: ChannelOpen,
    reason: (typeof OPEN_FAILURE)[keyof typeof OPEN_FAILURE],
    text: string,
  ): void {
    this.client.send(buildChannelOpenFailure(open.sender, reason, `sallyport: ${text}`))
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
