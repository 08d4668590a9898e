/**
 * Connects the client's leg and the target's: the connection as a whole, its end, and the back-pressure
 * between the two legs and the recording. Every connection-layer message (RFC 4254) passes here once.
 * Messages that open channels go to the table of channels (channels.ts), those of one channel to the channel.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { displayText } from '../../bytes/text.ts'
import { disconnect, end } from '../../net/disconnect.ts'
import { ends } from '../../session/ends.ts'
import { ProvenOutput } from '../../session/proven-output.ts'
import type { SessionResult } from '../../session/session.ts'
import { TimeLimits } from '../../session/time-limits.ts'
import type { AdoptedChannel } from '../channel/adopted-channel.ts'
import { MAX_KEPT } from '../channel/limits.ts'
import { TakingWatch } from '../channel/taking-watch.ts'
import { buildRequestFailure } from '../codec/build.ts'
import { type GlobalRequest, MSG, parseGlobalRequest, recipientOf } from '../codec/messages.ts'
import { isRight, ruleOf } from '../policy/decisions.ts'
import type { SshSession } from '../policy/session.ts'
import { Keepalive } from '../transport/keepalive.ts'
import type { ClientLeg, Leg } from '../transport/leg.ts'
import type { Channel, ChannelHost } from './channel.ts'
import { Channels } from './channels.ts'
import { GlobalRequests } from './forwarding-requests.ts'

export interface RelayOptions {
  /** The lowest channel number not yet used toward the client. */
  firstId: number
  takeMotd: () => string | undefined
  /** Called when both legs are closing and the session is sealed and logged. */
  onClosed: () => void
}

export class Relay implements ChannelHost {
  readonly client: ClientLeg
  readonly target: Leg
  readonly session: SshSession
  readonly #channels: Channels
  readonly #keepalive: Keepalive
  readonly #limits: TimeLimits
  readonly #requests: GlobalRequests
  readonly #onClosed: () => void
  /** Set if output waits for its recording. */
  readonly #proven: ProvenOutput | undefined
  /** Watches the client's connection. */
  readonly #taking = new TakingWatch()
  /** The result of the session, set when its end is reported to the client. */
  #dismissal: { result: SessionResult; reason: string } | undefined
  /** Set while the last output of terminals is read from the target. */
  #isDraining = false
  #deciding = 0
  #ended = false

  /** Returns the text for the connection's first terminal, once. */
  readonly takeMotd: () => string | undefined

  constructor(
    client: ClientLeg,
    target: Leg,
    session: SshSession,
    { firstId, takeMotd, onClosed }: RelayOptions,
  ) {
    this.#onClosed = onClosed
    this.takeMotd = takeMotd
    this.client = client
    this.target = target
    this.session = session
    this.#proven = session.isStrict
      ? new ProvenOutput({ client, flush: () => session.recording.flush() })
      : undefined
    this.#requests = new GlobalRequests(this)
    this.#channels = new Channels(this, this.#requests, firstId)
    this.#keepalive = new Keepalive([
      { transport: client, onSilent: () => this.#dismiss('failure', 'the client no longer answers') },
      {
        transport: target,
        onSilent: () => this.#close('failure', 'the target no longer answers'),
        onAsked: () => this.#requests.expectAnswer(),
      },
    ])
    this.#limits = new TimeLimits(session.options, {
      get signs() {
        return session.signs
      },
      warn: (text) => this.#tell(text),
      stop: (reason) => this.#dismiss('failure', reason),
    })
    client.onMessage = (payload) => this.#handle(payload, this.#fromClient, 'the client')
    target.onMessage = (payload) => this.#handle(payload, this.#fromTarget, 'the target')
    client.onDrain = target.onDrain = session.onDrain = () => this.#balance()
    // Rekey one leg at a time: data flows until the peer begins its part, and would wait for the other leg.
    client.mayRekey = () => !target.inKex
    target.mayRekey = () => !client.inKex
    client.onClosed = () => ends.run(() => this.#clientGone())
    target.onClosed = () => ends.run(() => this.#targetGone())
    session.onStop = (result, reason) => this.#dismiss(result, reason)
    session.onTell = (text) => this.#tell(text)
    session.suspension.onChange = () => this.guarded(() => this.#suspensionChanged())
    // A leg may have closed before its handler was set.
    if (client.closed) this.#close('success')
    else if (target.closed) this.#targetGone()
  }

  /** Handles a message that the client sent while there was no target. */
  replay(payload: Buffer): void {
    this.#handle(payload, this.#fromClient, 'the client')
  }

  /** Connects the channel in which the user has just chosen the target to that target. */
  adopt(channel: AdoptedChannel): void {
    this.#channels.adopt(channel)
  }

  /** Shows a line of the bastion on every terminal. */
  #tell(text: string): void {
    for (const channel of this.#channels.all()) channel.notice(text)
  }

  /** Holds or releases the client's input, and shows why. */
  #suspensionChanged(): void {
    const { suspension } = this.session
    if (this.#dismissal) return
    for (const channel of this.#channels.all()) {
      if (suspension.isOn) channel.suspend()
      else channel.release()
    }
    this.#tell(suspension.text)
  }

  /** Whether as much of a suspended client's data waits as may: it is read again afterwards. */
  get #isKeepingMuch(): boolean {
    if (!this.session.suspension.isOn) return false
    return this.#channels.all().reduce((sum, { kept }) => sum + kept, 0) > MAX_KEPT
  }

  onClosed(channel: Channel): void {
    this.#channels.remove(channel)
    // End it: a client that keeps the connection for reuse (ControlMaster) could open nothing more on it.
    if (this.target.isSpent && this.#channels.size === 0) this.#close('success')
  }

  get isClientStuck(): boolean {
    return this.#taking.isStuck
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
    const isBreach = error instanceof MalformedError
    const reason = isBreach ? `${peer} broke the SSH protocol: ${error.message}` : 'internal error'
    if (peer === 'the client') this.#dismiss('failure', reason)
    else this.#close('failure', reason)
  }

  #fromClient(payload: Buffer): void {
    if (this.#dismissal) return
    switch (payload[0]) {
      case MSG.globalRequest:
        this.#globalRequest(parseGlobalRequest(payload))
        return
      case MSG.channelOpen:
        this.#channels.open('client', payload)
        return
      case MSG.requestSuccess:
      case MSG.requestFailure:
        // Replies to keepalives: their arrival is enough.
        return
      case MSG.channelOpenConfirmation:
      case MSG.channelOpenFailure:
        this.#channels.answered('client', payload)
        return
      default:
        this.#channels.get(recipientOf(payload))?.fromClient(payload)
    }
  }

  #fromTarget(payload: Buffer): void {
    // There is no client any more for the channel.
    if (this.#dismissal && payload[0] === MSG.channelOpen) return
    switch (payload[0]) {
      case MSG.globalRequest:
        // The bastion answers itself, if only by failures: see decisions.ts.
        if (parseGlobalRequest(payload).wantReply) this.target.send(buildRequestFailure())
        return
      case MSG.channelOpen:
        this.#channels.open('target', payload)
        return
      case MSG.requestSuccess:
      case MSG.requestFailure:
        this.#requests.answered(payload[0] === MSG.requestSuccess, payload)
        return
      case MSG.channelOpenConfirmation:
      case MSG.channelOpenFailure:
        this.#channels.answered('target', payload)
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
    if (isEnd) this.#channels.endSessions()
    if (rule === undefined) this.session.denied(displayText(Buffer.from(name, 'latin1')), 'not allowed here')
    this.#requests.answer(wantReply, isEnd)
  }

  /** Reads each side only while the other side, and the recording, accept its data. */
  #balance(): void {
    if (this.#ended) return
    const { client, target } = this
    const full = this.session.isFull || (this.#proven?.isFull ?? false)
    // A client that has left accepts nothing more, so nothing waits for it.
    const isCongested = client.congested && !this.#isDraining
    const wasStuck = this.#taking.isStuck
    this.#taking.look(client.written, client.waiting)
    if (wasStuck && !this.#taking.isStuck) queueMicrotask(() => this.#goOn())
    // Two legs in key exchanges at the same time would wait for each other's end.
    target.paused = full || target.flooded || (isCongested && !target.inKex)
    client.paused =
      this.#dismissal !== undefined ||
      full ||
      this.#deciding > 0 ||
      client.flooded ||
      this.#isKeepingMuch ||
      (target.congested && !client.inKex)
  }

  /** Sends the output that had to wait for the client. */
  #goOn(): void {
    this.guarded(() => {
      for (const channel of this.#channels.all()) channel.goOn()
    })
  }

  #clientGone(): void {
    if (this.#ended) return
    const reason = this.client.failure
    if (reason !== undefined) this.#dismissal ??= { result: 'failure', reason }
    this.#drain()
  }

  /**
   * Ends the session for the client with a reason, and reads no more from it. The target's replies to the
   * client's last input are still recorded.
   */
  #dismiss(result: SessionResult, reason: string): void {
    if (this.#ended || this.#dismissal) return
    this.#dismissal = { result, reason }
    this.#limits.stop()
    if (this.session.recording.hasFailed || this.session.isQuotaUsedUp) {
      this.#close(result, reason)
      return
    }
    try {
      for (const channel of this.#channels.all()) channel.dismiss(reason)
    } catch {
      this.#close('failure', 'internal error')
      return
    }
    this.#drain()
  }

  /** Records the last output of terminals before the target is left. */
  #drain(): void {
    if (this.#isDraining) return
    this.#isDraining = true
    this.#keepalive.stop()
    const channels = this.#channels.all()
    let left = channels.length + 1
    const then = () => {
      if (--left === 0) this.#close('success')
    }
    try {
      for (const channel of channels) channel.leave(then)
      then()
    } catch {
      this.#close('failure', 'internal error')
    }
    this.#balance()
  }

  #targetGone(): void {
    // A target closes its channels before an orderly end; channels still open were cut off.
    const cut = this.#channels.size > 0 ? 'the target closed the connection' : undefined
    const reason = this.target.failure ?? cut
    this.#close(reason === undefined ? 'success' : 'failure', reason)
  }

  /** After a dismissal, its result and reason count, whatever happens later. */
  #close(because: SessionResult, why?: string): void {
    if (this.#ended) return
    this.#ended = true
    const { result, reason } = this.#dismissal ?? { result: because, reason: why }
    this.#keepalive.stop()
    this.#limits.stop()
    if (this.#proven && this.session.recording.hasFailed) this.#proven.destroy()
    if (reason !== undefined) for (const channel of this.#channels.all()) channel.refuse(reason)
    for (const channel of this.#channels.all()) channel.close()
    this.#channels.clear()
    this.client.paused = this.target.paused = false
    end(this.target)
    this.target.onClosed = undefined
    const clientClosed = new Promise<void>((resolve) => {
      this.client.onClosed = resolve
      if (this.client.closed) resolve()
    })
    const leave = reason === undefined ? end : disconnect
    if (this.#proven) void this.#proven.flushAll().then(() => leave(this.client))
    else leave(this.client)
    Promise.allSettled([this.session.close(result, reason), clientClosed]).then(this.#onClosed)
  }
}
