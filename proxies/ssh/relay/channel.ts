/**
 * What every channel through the bastion has, whatever it is for. The bastion numbers channels itself, with one
 * number on both legs, and rewrites the recipient of every message: neither peer can address a channel that is not
 * in the relay's table. Here are the opening and closing handshakes, the two windows, the queue of what has to wait
 * and the way of the data past the recorder; what a channel may be used for is its subclass's to decide.
 */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { ChannelEnd } from '../channel/channel-end.ts'
import { ClientQueue } from '../channel/client-queue.ts'
import type { Flow } from '../channel/flow.ts'
import { interruptIn } from '../channel/interrupts.ts'
import { MAX_CHANNEL_PACKET, MAX_WINDOW } from '../channel/limits.ts'
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

/** What a channel needs of the relay that it belongs to. */
export interface ChannelHost {
  readonly client: Leg
  readonly target: Leg
  readonly session: SshSession
  /** What the first terminal of the connection is shown, once. */
  takeMotd(): string | undefined
  /** Both sides have closed on both legs: the number is free again. */
  onClosed(channel: Channel): void
  /** It takes nothing of what waits for it on its connection. */
  readonly isClientStuck: boolean
  /** The client is not read until the decision of a channel is there. */
  setDeciding(deciding: boolean): void
  /** Runs what goes on after a wait; what it throws ends the session as it would in the middle of a message. */
  guarded(work: () => void): void
}

/** What the peer that opens a channel calls it, and what it takes. */
export interface Opened {
  id: number
  window: number
  maxPacket: number
}

/**
 * `waiting` for what gives the channel its purpose, `deciding` while that waits for the audit log, `passing` data,
 * `over` once one side has closed it for both or it was ended here.
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
  /** Where not all of the data may pass. */
  #filtered: FilteredData | undefined
  /** Of a terminal, where only what is typed is a sign of the user. */
  #terminal: TerminalOutput | undefined
  /** The client was told that it is over: nothing passes between the two, and what the target still says is recorded. */
  #isDismissed = false
  /** What the client sent last was held back, because it did not look. */
  #wasHeld = false
  /** The target has closed it; the client is to get the rest of the output first. */
  #isClosing = false
  readonly #opener: ChannelEnd
  readonly #openerMaxPacket: number
  /** Client to target; its window is 0 until the target takes part. */
  readonly #up: Flow
  /** Target to client. */
  readonly #down: Flow
  /** Where all of the client's data may pass. */
  protected readonly input: Input
  readonly #queue = new ClientQueue()

  /** `up` and `down`: what the two directions begin with; the opener's window is in the one toward it. */
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

  /** The window and packet size to name in the CHANNEL_OPEN toward the other side. */
  offer(): { window: number; maxPacket: number } {
    const flow = this.#opener === this.client ? this.#down : this.#up
    return { window: flow.grant(), maxPacket: Math.min(this.#openerMaxPacket, MAX_CHANNEL_PACKET) }
  }

  get openedBy(): 'client' | 'target' {
    return this.#opener === this.client ? 'client' : 'target'
  }

  /** The side that did not open it has confirmed it. */
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

  /** The side that did not open it has refused it. */
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
        this.target.grant(this.#down, 1)
        this.goOn()
        return
      case MSG.channelClose:
        // What waits for a client that does not look is not done behind its back.
        if (this.#isHeld) this.#queue.clear()
        this.#terminal?.drop()
        // It takes no answers any more, so nothing waits for it to do so.
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
    } else {
      const isHeld = this.#isHeld
      // What was held may go since, and nobody has said so.
      if (this.#wasHeld && !isHeld) this.drain()
      this.#wasHeld = isHeld
      const message = isHeld || this.recorder?.isHolding ? this.#overtake(payload) : payload
      const rest = message && this.#queue.isEmpty ? this.#step(message) : message
      if (rest !== undefined) this.#queue.push([rest])
      this.#grantClient()
    }
  }

  fromTarget(payload: Buffer): void {
    if (!this.target.isOpen) throw new MalformedError('a message before the confirmation')
    // Of a channel that was ended here only the end is of interest.
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
        this.client.grant(this.#up, 1)
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

  /** Ends the channel from here, with a reason; also what the target has still to say is dropped. */
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

  /** The recording of the channel ends; called when the channel, or the whole session, is over. */
  close(): void {
    this.stage = 'over'
    this.#terminal?.stop()
    this.#filtered?.close()
    this.recorder?.close()
    this.recorder = undefined
  }

  /** The client takes more, or takes again: goes on with what waits for that. */
  goOn(): void {
    if (this.#terminal) {
      this.#terminal.resume()
      this.target.grant(this.#down, 1)
      if (this.#isClosing) this.#closeWhenTaken()
    }
    this.#filtered?.resume()
    if (this.#filtered || this.#terminal) this.drain()
  }

  /** The client has gone, or was dismissed. Calls back when the recording has what the target says at once. */
  leave(then: () => void): void {
    if (this.#terminal && this.stage === 'passing') this.#terminal.leave(this.recorder?.awaken?.(), then)
    else then()
  }

  /**
   * Tells the client that it is over, and why; nothing of it goes to the target any more, and nothing to it. A terminal's
   * target is not left yet: `leave` does that. All else ends here.
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

  /** A request of the client, in order; the subclass passes it on or answers it. */
  protected abstract requestOfClient(payload: Buffer): void

  /** A line of the bastion's own, where there is a terminal to show it. */
  notice(_text: string): void {}

  /** The last words to the client before a channel that was ended here is closed. */
  protected explain(_reason: string, _begun: boolean): void {}

  /** The target has answered a request. */
  protected replied(_granted: boolean): void {
    throw new MalformedError('an answer to no request')
  }

  /** Looks at data of the target before it is passed on; undefined: nothing is, for now. */
  protected inspect(payload: Buffer, data: Uint8Array, isError: boolean): Buffer | undefined {
    if (!this.recorder?.mayFollow) this.recorder?.fromTarget(data, isError)
    return payload
  }

  protected requestOfTarget(payload: Buffer): void {
    this.target.turnDown(parseChannelRequest(payload).wantReply)
  }

  /** From now on, for a terminal: its output is taken from the target whether the client takes it or not. */
  protected beTerminal(): void {
    this.#terminal = new TerminalOutput(this.client, this.target, this.#down)
  }

  /** It is no terminal: all that it carries waits for who takes it. */
  protected beStream(): void {
    this.#terminal = undefined
    this.#down.ahead = 0
    this.#up.limit = MAX_WINDOW
    this.client.grant(this.#up, 1)
  }

  /** Passes a message of the target on, behind its output. */
  protected follow(payload: Buffer): void {
    if (this.#terminal) this.#terminal.follow(payload)
    else this.client.pass(payload)
  }

  /** Bytes that the client still takes. */
  protected get clientWindow(): number {
    return this.#down.window
  }

  /** The bastion sends the client data of its own, which counts like the target's. */
  protected tell(data: Buffer, build: typeof buildData = buildExtendedData): void {
    this.#down.forwarded(data.length)
    this.client.leg.send(build(this.client.id!, data))
  }

  /** The channel was opened, and confirmed to its opener, before there was another side. */
  protected adopt(messages: Buffer[]): void {
    this.#opener.isOpen = true
    this.#queue.push(messages)
  }

  /** From now on the channel's data is filtered. */
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
        deliver: (payload) => channel.fromTarget(payload),
        goOn: () => channel.host.guarded(() => channel.goOn()),
      },
    )
  }

  /** Goes on with what waits, as far as it may. */
  protected drain(): void {
    if (this.stage === 'over' || this.#isDismissed) return
    this.#queue.drain((message) => this.#step(message))
    this.#grantClient()
  }

  /** Grants the client no window for the data that still waits here. */
  #grantClient(): void {
    // A filter counts its own.
    if (this.#filtered) return
    this.#up.held = this.#queue.data
    this.client.grant(this.#up, this.#up.step)
  }

  /** Handles one message of the client in order. Returns what of it has to wait. */
  #step(payload: Buffer): Buffer | undefined {
    if (this.stage === 'deciding' || this.target.id === undefined) return payload
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
        // RFC 4254 5.2 gives it a meaning from the server only.
        throw new MalformedError('extended data from the client')
      default:
        // SUCCESS and FAILURE answer requests that the bastion never passes on.
        return undefined
    }
  }

  /** Who cannot see what comes of it types nothing. */
  get #isHeld(): boolean {
    return this.#terminal !== undefined && (this.#terminal.isStuck || this.host.isClientStuck)
  }

  /** Lets an interrupt go ahead of what waits. Returns what of the message has to wait. */
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
    // The recorder may have cut the channel over this very message.
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
