/**
 * The common part of all channels through the bastion. The bastion numbers channels itself, with one number
 * on both legs, and rewrites the recipient of every message: neither peer can address a channel outside the
 * relay's table. This class has the opening and closing handshakes, the two windows, the queue of waiting
 * messages, and the data's path past the recorder; the subclass decides what a channel may be used for.
 */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { ChannelEnd } from '../channel/channel-end.ts'
import { ClientQueue } from '../channel/client-queue.ts'
import type { Flow } from '../channel/flow.ts'
import { interruptIn } from '../channel/interrupts.ts'
import { MAX_CHANNEL_PACKET, MAX_QUEUED, MAX_WINDOW } from '../channel/limits.ts'
import { TerminalOutput } from '../channel/terminal-output.ts'
import { buildChannelOpenConfirmation, type buildData, buildExtendedData } from '../codec/build.ts'
import {
  type ChannelOpenConfirmation,
  dataOf,
  extendedDataOf,
  MSG,
  OPEN_FAILURE,
  type OpenFailureReason,
  parseChannelRequest,
  windowAdjustOf,
} from '../codec/messages.ts'
import type { SshSession } from '../policy/session.ts'
import type { ChannelRecorder } from '../recorder/recorder.ts'
import type { FilterPolicy } from '../sftp/filter.ts'
import { FilteredData, type Surroundings } from '../sftp/filtered-data.ts'
import type { Leg } from '../transport/leg.ts'
import { Input } from './input.ts'

/** The relay's side of a channel. */
export interface ChannelHost {
  readonly client: Leg
  readonly target: Leg
  readonly session: SshSession
  /** Returns the text for the connection's first terminal, once. */
  takeMotd(): string | undefined
  /** Called when both sides have closed the channel on both legs: its number is free again. */
  onClosed(channel: Channel): void
  /** Whether the client's connection has been unable to send for too long. */
  readonly isClientStuck: boolean
  /** Stops reading the client while a channel's decision is pending. */
  setDeciding(deciding: boolean): void
  /** Runs a continuation after a wait. An error ends the session, as during a message. */
  guarded(work: () => void): void
}

/** The opening peer's channel number, window and packet size. */
export interface Opened {
  id: number
  window: number
  maxPacket: number
}

/**
 * `waiting` for the main request, `deciding` while the audit log stores it, `passing` data, `over` once the
 * channel was closed by one side for both, or ended here.
 */
export type Stage = 'waiting' | 'deciding' | 'passing' | 'over'

export abstract class Channel {
  /** The bastion's number, on both legs. */
  readonly id: number
  protected readonly host: ChannelHost
  protected readonly client: ChannelEnd
  protected readonly target: ChannelEnd
  protected stage: Stage = 'waiting'
  protected recorder: ChannelRecorder | undefined
  /** Set if the data is filtered. */
  #filtered: FilteredData | undefined
  /** Set for a terminal, where only typed input is a sign of the user. */
  #terminal: TerminalOutput | undefined
  /** Set after `dismiss`: nothing is forwarded any more, but the target's last output is recorded. */
  #isDismissed = false
  /** Set if the client's last message was held because the client did not read. */
  #wasHeld = false
  /** Set if the target has closed the channel, and the client still gets the rest of the output. */
  #isClosing = false
  readonly #opener: ChannelEnd
  readonly #openerMaxPacket: number
  /** Client to target; the window is 0 until the target has confirmed. */
  readonly #up: Flow
  /** Target to client. */
  readonly #down: Flow
  /** Forwards the client's data where it is not filtered. */
  protected readonly input: Input
  readonly #queue = new ClientQueue()

  /** `up` and `down`: the initial flows; the opener's window is in the one toward it. */
  constructor(host: ChannelHost, id: number, by: 'client' | 'target', opened: Opened, up: Flow, down: Flow) {
    this.host = host
    this.id = id
    this.client = new ChannelEnd(host.client)
    this.target = new ChannelEnd(host.target)
    this.#opener = by === 'client' ? this.client : this.target
    this.#opener.id = opened.id
    this.#opener.maxPacket = opened.maxPacket
    this.#openerMaxPacket = opened.maxPacket
    this.#up = up
    this.#down = down
    const channel = this
    this.input = new Input({
      id,
      session: host.session,
      target: this.target,
      flow: up,
      get recorder() {
        return channel.recorder
      },
      get isPassing() {
        return channel.stage === 'passing' && !channel.#isDismissed
      },
    })
  }

  /** Returns window and packet size for the CHANNEL_OPEN toward the other side. */
  offer(): { window: number; maxPacket: number } {
    const flow = this.#opener === this.client ? this.#down : this.#up
    return { window: flow.grant(), maxPacket: Math.min(this.#openerMaxPacket, MAX_CHANNEL_PACKET) }
  }

  get openedBy(): 'client' | 'target' {
    return this.#opener === this.client ? 'client' : 'target'
  }

  /** Handles the other side's confirmation of the channel. */
  confirmed(message: ChannelOpenConfirmation): void {
    const byClient = this.#opener === this.client
    const other = byClient ? this.target : this.client
    if (other.id !== undefined) throw new MalformedError('the channel was confirmed already')
    other.id = message.sender
    other.isOpen = true
    other.maxPacket = message.maxPacket
    const flow = byClient ? this.#up : this.#down
    flow.widen(message.window)
    if (this.stage === 'over') {
      other.close()
      return
    }
    other.grant(byClient ? this.#down : this.#up, 1)
    if (this.#opener.isOpen) {
      this.#opener.grant(flow, 1)
    } else {
      this.#opener.isOpen = true
      this.#opener.leg.send(
        buildChannelOpenConfirmation({
          recipient: this.#opener.id!,
          sender: this.id,
          window: flow.grant(),
          maxPacket: Math.min(message.maxPacket, MAX_CHANNEL_PACKET),
        }),
      )
    }
    this.drain()
  }

  /** Handles the other side's refusal of the channel. */
  failed(reason: number, description: string): void {
    const other = this.#opener === this.client ? this.target : this.client
    if (other.id !== undefined) throw new MalformedError('the channel was confirmed already')
    if (this.#opener.isOpen) this.refuse(`the target refused to open a session: ${description}`)
    else this.#opener.fail(reason >= 1 && reason <= 4 ? (reason as OpenFailureReason) : 2, description)
    other.gone()
    this.#settle()
  }

  fromClient(payload: Buffer): void {
    if (this.client.closedBy) return
    if (!this.client.isOpen) throw new MalformedError('a message before the confirmation')
    switch (payload[0]) {
      case MSG.channelData:
        if (!this.#up.received(dataOf(payload).length)) {
          throw new MalformedError('more data than the window allows')
        }
        break
      case MSG.channelWindowAdjust:
        if (!this.#down.widen(windowAdjustOf(payload))) throw new MalformedError('the window is over 2^32-1')
        this.target.grant(this.#down, this.#down.refill)
        this.goOn()
        return
      case MSG.channelClose:
        // Keys held back while the client did not read must not run unseen.
        if (this.#isHeld) this.#queue.clear()
        this.#terminal?.drop()
        // The client accepts no more replies, so nothing may wait for it to read them.
        if (this.#filtered !== undefined) {
          this.#queue.clear()
          this.#filtered.dropAnswers()
          this.goOn()
        }
    }
    if (this.stage === 'over') {
      if (payload[0] === MSG.channelClose) {
        this.client.closedBy = true
        this.#settle()
      }
    } else if (this.host.session.suspension.isOn) {
      this.#fromSuspended(payload)
    } else if (this.isAsking || this.recorder?.isAsking) {
      this.#whileAsking(payload)
    } else {
      const isHeld = this.#isHeld
      // Held messages may be sendable again without any event for it.
      if (this.#wasHeld && !isHeld) this.drain()
      this.#wasHeld = isHeld
      const message = isHeld || this.recorder?.isHolding ? this.#overtake(payload) : payload
      const rest = message && this.#queue.isEmpty ? this.#step(message) : message
      if (rest !== undefined) this.#queue.push([rest])
      this.#grantClient()
    }
  }

  /**
   * Handles a message while input is suspended. A terminal's input is dropped: it would run later, unseen and out of
   * place. A stream's waits, so that no byte of it is lost. The client's end is no input.
   */
  #fromSuspended(payload: Buffer): void {
    if (payload[0] === MSG.channelClose) {
      this.#queue.clear()
      this.#step(payload)
    } else if (this.stage !== 'passing' || (payload[0] !== MSG.channelRequest && !this.#terminal)) {
      this.#queue.push([payload], MAX_QUEUED + MAX_WINDOW)
      this.onKept(payload)
    } else if (payload[0] === MSG.channelRequest) this.requestWhileSuspended(payload)
    this.#grantClient()
  }

  /** Handles a message while approvers are asked about a held command line: only ^C and the client's end count. */
  #whileAsking(payload: Buffer): void {
    const interrupt = interruptIn(payload, this.id)
    if (payload[0] === MSG.channelClose) {
      this.giveUp('the client has left')
      this.#queue.clear()
      if (this.stage === 'passing') this.#step(payload)
      else {
        this.refuse('the client has left')
        this.client.closedBy = true
        this.#settle()
      }
    } else if (this.isAsking) this.#queue.push([payload], MAX_QUEUED + MAX_WINDOW)
    else if (interrupt) {
      this.giveUp('the user gave up')
      this.#queue.dropData()
      this.#overtake(payload)
    } else if (payload[0] === MSG.channelRequest) this.requestOfClient(payload)
    else if (payload[0] !== MSG.channelData) this.#queue.push([payload])
    this.#grantClient()
  }

  /** Whether approvers are asked about the channel's program, which has not begun. */
  protected get isAsking(): boolean {
    return false
  }

  /** Gives up the question about a held command line. */
  protected giveUp(reason: string): void {
    this.recorder?.giveUp?.(reason)
  }

  /** Offers the held Return again, and nothing that was typed behind it. A refused one is dropped. */
  protected answered(isAccepted: boolean): void {
    if (isAccepted) this.#queue.keepFirst()
    else this.#queue.dropData()
    this.drain()
  }

  /** Bytes of the client's that wait in the bastion. */
  get kept(): number {
    return this.#queue.bytes
  }

  /** Drops what was typed before the suspension and has not been sent. */
  suspend(): void {
    this.giveUp('input was suspended')
    if (this.#terminal && this.stage === 'passing') this.#queue.dropData()
    this.#grantClient()
  }

  /** Continues after a suspension. */
  release(): void {
    this.#filtered?.resume()
    this.drain()
  }

  fromTarget(payload: Buffer): void {
    if (!this.target.isOpen) throw new MalformedError('a message before the confirmation')
    // After the end of a channel, only its close matters.
    if (this.stage === 'over' && payload[0] !== MSG.channelClose) return
    if (this.stage === 'passing' && this.#filtered?.keepsBack(payload)) return
    switch (payload[0]) {
      case MSG.channelData:
        this.#data(payload, dataOf(payload), false)
        return
      case MSG.channelExtendedData:
        this.#data(payload, extendedDataOf(payload), true)
        return
      case MSG.channelWindowAdjust:
        if (!this.#up.widen(windowAdjustOf(payload))) throw new MalformedError('the window is over 2^32-1')
        this.client.grant(this.#up, this.#up.refill)
        this.goOn()
        this.drain()
        return
      case MSG.channelSuccess:
      case MSG.channelFailure:
        if (!this.#isDismissed) this.replied(payload[0] === MSG.channelSuccess)
        return
      case MSG.channelRequest:
        this.requestOfTarget(payload)
        return
      case MSG.channelEof:
        if (this.stage === 'passing') this.follow(payload)
        return
      case MSG.channelClose:
        this.target.closedBy = true
        this.target.close()
        this.#isClosing = true
        this.#closeWhenTaken()
        return
      default:
        throw new MalformedError(`message ${payload[0]} is none of a channel`)
    }
  }

  /** Ends the channel with a reason. Later output of the target is dropped. */
  refuse(reason: string): void {
    if (this.stage === 'over') return
    const begun = this.stage === 'passing'
    this.stage = 'over'
    this.#queue.clear()
    const other = this.#opener === this.client ? this.target : this.client
    other.close()
    if (this.#opener.isOpen) {
      if (!this.client.closedTo) this.explain(reason, begun)
      this.#opener.close()
    } else {
      this.#opener.fail(OPEN_FAILURE.connectFailed, `sallyport: ${reason}`)
    }
    this.goOn()
    this.#settle()
  }

  /** Ends the channel's recording. Called at the end of the channel or of the whole session. */
  close(): void {
    this.stage = 'over'
    this.#terminal?.stop()
    this.#filtered?.close()
    this.recorder?.close()
    this.recorder = undefined
  }

  /** Sends waiting output after the client has made room. */
  goOn(): void {
    if (this.#terminal) {
      this.#terminal.resume()
      this.target.grant(this.#down, 1)
      if (this.#isClosing) this.#closeWhenTaken()
    }
    this.#filtered?.resume()
    if (this.#filtered || this.#terminal) this.drain()
  }

  /** Call when the client has left or was dismissed. Calls back when the target's last output is recorded. */
  leave(then: () => void): void {
    if (this.#terminal && this.stage === 'passing') this.#terminal.leave(this.recorder?.awaken?.(), then)
    else then()
  }

  /**
   * Ends the session for the client with a reason; nothing more is forwarded in either direction. A
   * terminal's target stays until `leave`; all other channels end here.
   */
  dismiss(reason: string): void {
    if (this.#isDismissed) return
    if (!this.#terminal || this.stage !== 'passing') {
      this.refuse(reason)
      return
    }
    this.#isDismissed = true
    this.#queue.clear()
    this.#terminal.drop()
    if (!this.client.closedTo) this.explain(reason, true)
    this.client.close()
  }

  /** Handles a request of the client, in order: forwards or answers it. */
  protected abstract requestOfClient(payload: Buffer): void

  /** Called for a message that waits for the end of a suspension. */
  protected onKept(_payload: Buffer): void {}

  /** Handles a request to a running program while input is suspended: it is not forwarded. */
  protected requestWhileSuspended(payload: Buffer): void {
    this.client.turnDown(parseChannelRequest(payload).wantReply)
  }

  /** Shows a line of the bastion on a terminal. */
  notice(_text: string): void {}

  /** Shows the client the reason before a channel that ended here is closed. */
  protected explain(_reason: string, _begun: boolean): void {}

  /** Handles the target's reply to a request. */
  protected replied(_granted: boolean): void {
    throw new MalformedError('an answer to no request')
  }

  /**
   * Inspects the target's data before it is forwarded. Returns the payload to forward, or undefined if none
   * may be forwarded yet.
   */
  protected inspect(payload: Buffer, data: Uint8Array, isError: boolean): Buffer | undefined {
    if (!this.recorder?.mayFollow) this.recorder?.fromTarget(data, isError)
    return payload
  }

  protected requestOfTarget(payload: Buffer): void {
    this.target.turnDown(parseChannelRequest(payload).wantReply)
  }

  /** Makes the channel a terminal: its output is read from the target even if the client does not read it. */
  protected beTerminal(): void {
    this.#terminal = new TerminalOutput(this.client, this.target, this.#down)
  }

  /** Makes the channel a stream: its data waits until the receiver accepts it. */
  protected beStream(): void {
    this.#terminal = undefined
    this.#down.ahead = 0
    this.#up.limit = MAX_WINDOW
    this.client.grant(this.#up, 1)
  }

  /** Forwards a message of the target, behind its output. */
  protected follow(payload: Buffer): void {
    if (this.#terminal) this.#terminal.follow(payload)
    else this.client.pass(payload)
  }

  /** Bytes that the client still accepts. */
  protected get clientWindow(): number {
    return this.#down.window
  }

  /** Sends the client data of the bastion, which counts like the target's. */
  protected tell(data: Buffer, build: typeof buildData = buildExtendedData): void {
    this.#down.forwarded(data.length)
    this.client.leg.send(build(this.client.id!, data))
  }

  /** Takes over a channel that was confirmed to its opener before there was another side. */
  protected adopt(messages: Buffer[]): void {
    this.#opener.isOpen = true
    this.#queue.push(messages)
  }

  /** Filters the channel's data from now on. */
  protected filter(policy: FilterPolicy, around: Pick<Surroundings, 'denied' | 'broken'>): void {
    const channel = this
    this.#filtered = new FilteredData(
      policy,
      { flow: this.#up, end: this.target },
      { flow: this.#down, end: this.client },
      {
        ...around,
        get recorder() {
          return channel.recorder
        },
        get isPassing() {
          return channel.stage === 'passing'
        },
        get isSuspended() {
          return channel.host.session.suspension.isOn
        },
        get queued() {
          return channel.#queue.data
        },
        deliver: (payload) => channel.fromTarget(payload),
        goOn: () => channel.host.guarded(() => channel.goOn()),
      },
    )
  }

  /** Processes the waiting messages as far as possible. */
  protected drain(): void {
    if (this.stage === 'over' || this.#isDismissed) return
    this.#queue.drain((message) => this.#step(message))
    this.#grantClient()
  }

  /** Waiting data is still in the bastion: the client gets no window for it until it is sent. */
  #grantClient(): void {
    // A filter counts its held data itself.
    if (this.#filtered) return
    this.#up.held = this.#queue.data
    this.client.grant(this.#up, this.#up.step)
  }

  /** Handles one message of the client in order. Returns the part that must wait. */
  #step(payload: Buffer): Buffer | undefined {
    if (this.stage === 'deciding' || this.target.id === undefined) return payload
    if (this.host.session.suspension.isOn && payload[0] !== MSG.channelClose) return payload
    switch (payload[0]) {
      case MSG.channelData: {
        const data = dataOf(payload)
        if (this.stage === 'waiting') throw new MalformedError('data before a shell, command or subsystem')
        if (this.#filtered !== undefined) {
          this.host.session.bytesIn += data.length
          this.host.session.signs++
          this.#filtered.fromClient(data)
          return undefined
        }
        if (this.#isHeld) return payload
        this.#terminal?.typed()
        return this.input.pass(payload, data)
      }
      case MSG.channelRequest:
        this.requestOfClient(payload)
        return undefined
      case MSG.channelEof:
        if (this.stage === 'waiting') throw new MalformedError('an end before a shell, command or subsystem')
        if (this.#filtered?.isWaitingUp) return payload
        this.target.pass(payload)
        return undefined
      case MSG.channelClose:
        this.client.closedBy = true
        this.leave(() => {
          this.target.close()
          this.#settle()
        })
        return undefined
      case MSG.channelExtendedData:
        // RFC 4254 5.2 defines extended data from the server only.
        throw new MalformedError('extended data from the client')
      default:
        // SUCCESS and FAILURE answer requests that the bastion never forwards.
        return undefined
    }
  }

  /** Whether input is held because the client does not read: its user cannot see the effect of keys. */
  get #isHeld(): boolean {
    return this.#terminal !== undefined && (this.#terminal.isStuck || this.host.isClientStuck)
  }

  /** Sends an interrupt ahead of waiting messages. Returns the part of the message that must wait. */
  #overtake(payload: Buffer): Buffer | undefined {
    const interrupt = this.stage === 'passing' ? interruptIn(payload, this.id) : undefined
    if (!interrupt) return payload
    const { now, later } = interrupt
    if (now[0] === MSG.channelRequest) {
      this.requestOfClient(now)
      return undefined
    }
    this.#queue.dropData()
    return this.input.pass(now, dataOf(now)) ? payload : later
  }

  #data(payload: Buffer, data: Uint8Array, isError: boolean): void {
    if (!this.#down.received(data.length)) throw new MalformedError('more data than the window allows')
    if (this.stage !== 'passing') return
    this.host.session.bytesOut += data.length
    if (!this.#terminal) this.host.session.signs++
    if (this.#filtered !== undefined && !isError) {
      this.#filtered.fromTarget(data)
      this.drain()
      return
    }
    if (!this.#terminal) this.#down.forwarded(data.length)
    const passed = this.inspect(payload, data, isError)
    // The recorder may have cut the channel over this message.
    if (passed === undefined || this.stage !== 'passing') return
    if (this.#terminal) this.#terminal.pass(passed, data, isError)
    else this.client.pass(passed)
    if (this.recorder?.mayFollow) this.recorder.fromTarget(data, isError)
    this.target.grant(this.#down, this.#down.step)
  }

  #closeWhenTaken(): void {
    if (this.#terminal?.isWaiting && this.stage === 'passing') return
    this.#isClosing = false
    this.client.close()
    this.stage = 'over'
    this.#queue.clear()
    this.#terminal?.stop()
    this.#settle()
  }

  #settle(): void {
    if (!this.client.isClosed || !this.target.isClosed) return
    this.close()
    this.host.onClosed(this)
  }
}
