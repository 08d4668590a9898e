/**
 * The client's leg while there is no target: between sign-in and target, in the menu, and after a target
 * refused or could not be reached. The lobby keeps the client's messages until the target is ready
 * (`waiting`), or opens the client's channels itself to show a text or the menu (`local`).
 *
 * No right is checked here and nothing is relayed: a connection leaves only to the relay, or by closing.
 */

import { Buffer } from 'node:buffer'
import type { TargetEntry } from '../../../src/contract/gate.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { displayText } from '../../bytes/text.ts'
import { MAX_DENIALS } from '../../session/limits.ts'
import { Patience } from '../../session/patience.ts'
import type { AdoptedChannel } from '../channel/adopted-channel.ts'
import { MAX_FORWARDED_CHANNELS, MAX_SESSION_CHANNELS } from '../channel/limits.ts'
import { buildChannelOpenFailure, buildRequestFailure } from '../codec/build.ts'
import { addressFlaw, parseConnection } from '../codec/forwarding.ts'
import {
  type ChannelOpen,
  MSG,
  OPEN_FAILURE,
  parseChannelOpen,
  parseGlobalRequest,
  recipientOf,
} from '../codec/messages.ts'
import { isRight, ruleOf } from '../policy/decisions.ts'
import { Keepalive } from '../transport/keepalive.ts'
import type { ClientLeg } from '../transport/leg.ts'
import { ClientAgent } from './client-agent.ts'
import type { Given, Question } from './dialogs.ts'
import { type Allowance, HeldChannel } from './held-channel.ts'
import { AGENT_REQUEST_MS, LOBBY_IDLE_MS, MAX_ANNOUNCED } from './limits.ts'
import { LocalChannel, type LocalOptions } from './local.ts'
import { WaitingMessages } from './waiting-messages.ts'

export interface LobbyOptions {
  client: ClientLeg
  /** Called at the first channel request: the target should be connected now. */
  onFirstChannel: () => void
  /** Returns the text for the connection's first terminal, once. */
  takeMotd: () => string | undefined
  /** Returns the targets for the menu, which needs a terminal. */
  targets: () => Promise<{ targets: TargetEntry[]; total: number }>
  onChoice: (choice: TargetEntry, channel: LocalChannel) => void
  /** Called with the answer to the question about the target of this channel. */
  onGiven: (given: Given, channel: LocalChannel) => void
  /** Returns the hint for a client that tries to jump to a device by a forwarded connection. */
  jumpHint: (device: string) => string
  /** Called when a request was refused that the bastion never allows, or not without a target. */
  onDenied: (what: string) => void
  /** Called when the client breaks the protocol. */
  onBreach: () => void
  /** Called when the client sent no request for too long. */
  onIdle: () => void
}

type Mode =
  | { name: 'waiting' }
  /** `text` is shown on every channel without menu, and before the question if there is one. */
  | { name: 'local'; text: string; menu: boolean; question?: Question }

export class Lobby {
  readonly #options: LobbyOptions
  /** Messages for the relay. */
  readonly #waiting = new WaitingMessages()
  /** Set while a global request waits: later ones must wait for their replies too (RFC 4254 4). */
  #requestWaits = false
  readonly #channels = new Map<number, LocalChannel>()
  readonly #keepalive: Keepalive
  /** The first session channel, if it is held to learn whether the client forwards its agent. */
  #held: HeldChannel | undefined
  #agent: ClientAgent | undefined
  /** Called at each further waiting message while a session channel is awaited. */
  #onWaiting: (() => void) | undefined
  #giveUpAgent: (() => void) | undefined
  #mode: Mode
  /** Why the client waits; shown on its first session channel. */
  #announced: { text: string; onInterrupt: () => void } | undefined
  /** The channel that shows it. */
  #shown: LocalChannel | undefined
  readonly #idle: Patience
  #nextId = 0
  #asked = false
  #denials = 0

  constructor(options: LobbyOptions, mode: Mode) {
    this.#options = options
    this.#mode = mode
    const { client } = options
    this.#keepalive = new Keepalive([{ transport: client, onSilent: () => client.destroy() }])
    this.#idle = new Patience(LOBBY_IDLE_MS, () => options.onIdle())
    client.onMessage = (payload) => {
      try {
        this.#message(payload)
      } catch (error) {
        if (!(error instanceof MalformedError)) throw error
        options.onBreach()
      }
      // Stop reading from a client that does not read its replies.
      if (client.flooded) client.paused = true
    }
    client.onDrain = () => {
      client.paused = false
    }
  }

  /** Call when the client leaves the lobby: for the target, or for good. */
  close(): void {
    this.#keepalive.stop()
    this.#idle.stop()
    this.#giveUpAgent?.()
    this.#agent?.close()
  }

  /**
   * Opens a channel to the user's agent. Returns undefined if the agent is not forwarded. `chosen` is the
   * menu's channel if the target was chosen there; otherwise the first waiting session channel is opened to
   * see whether it requests forwarding. `may`: the session's rights and limits.
   */
  async agent(chosen: LocalChannel | undefined, may: Allowance): Promise<ClientAgent | undefined> {
    const isForwarded = chosen ? chosen.hasAgent : await this.#isAgentForwarded(may)
    if (!isForwarded || this.#options.client.closed) return undefined
    this.#agent = new ClientAgent(this.#nextId++, (payload) => this.#options.client.send(payload))
    return this.#agent
  }

  /**
   * Shows why the client waits, on the terminal of its first session channel or on its standard error, and later
   * texts as well. All else of the client's waits too. `onInterrupt`: the user gives up.
   */
  announce(text: string, onInterrupt: () => void): void {
    this.#announced = { text: `${this.#announced?.text ?? ''}${text}`.slice(-MAX_ANNOUNCED), onInterrupt }
    if (this.#shown) this.#shown.say(text)
    else this.#showAnnounced()
  }

  /** Shows nothing to channels that come from now on: they wait for the target as usual. */
  hush(): void {
    if (!this.#shown) this.#announced = undefined
  }

  /** The channel that shows why the client waits: it continues at the target. */
  get shown(): LocalChannel | undefined {
    return this.#shown
  }

  /** Whether the client has a channel for a program. */
  get hasSession(): boolean {
    return this.#waiting.sessions > 0
  }

  /** The client may stay that much longer without a sign of life. 0: as usual. */
  extend(milliseconds: number): void {
    this.#idle.extend(milliseconds)
  }

  #showAnnounced(): void {
    const { text } = this.#announced ?? {}
    if (text === undefined || this.#shown) return
    const open = this.#waiting.takeSession()
    const onInterrupt = () => this.#announced?.onInterrupt()
    if (open) this.#shown = this.#newLocal(open, { text, onInterrupt })
  }

  /** Another channel of the client may still wait for the target. */
  #shownClosed(): void {
    this.#shown = undefined
    this.#showAnnounced()
    if (!this.#shown && this.#waiting.count === 0) this.#announced?.onInterrupt()
  }

  /** Returns the held channel for the relay. */
  releaseHeld(): AdoptedChannel | undefined {
    return this.#held?.handOver()
  }

  /** A session channel may follow other requests of the client, such as its listeners. */
  #isAgentForwarded(may: Allowance): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isForwarded: boolean): void => {
        clearTimeout(timer)
        this.#onWaiting = undefined
        this.#giveUpAgent = undefined
        resolve(isForwarded)
      }
      const hold = (): void => {
        const open = this.#waiting.takeSession()
        if (!open) return
        this.#onWaiting = undefined
        this.#held = new HeldChannel({
          id: this.#nextId++,
          open,
          send: (payload) => this.#options.client.send(payload),
          may,
          onKnown: settle,
          onClosed: () => {
            this.#held = undefined
          },
        })
      }
      this.#giveUpAgent = () => (this.#held ? this.#held.known(false) : settle(false))
      const timer = setTimeout(this.#giveUpAgent, AGENT_REQUEST_MS)
      this.#onWaiting = hold
      hold()
    })
  }

  /** The lowest channel number not yet used toward the client. */
  get nextId(): number {
    return this.#nextId
  }

  /** Closes the client's other channels when it continues to a target. */
  leaveBehind(chosen: LocalChannel | undefined): void {
    for (const channel of this.#channels.values()) {
      if (channel !== chosen) channel.close('sallyport: a target was chosen on this connection\r\n', 255)
    }
  }

  /** Returns and clears the client's waiting messages, for the relay. */
  takeWaiting(): Buffer[] {
    this.#requestWaits = false
    return this.#waiting.take()
  }

  /**
   * Reports on every channel that there is no target. On a terminal, the user may choose another target
   * (`menu`), or answer `question`.
   */
  goLocal(text: string, menu: boolean, question?: Question): void {
    this.#mode = { name: 'local', text, menu, ...(question && { question }) }
    this.#announced = undefined
    this.#shown = undefined
    this.#held?.close(`sallyport: ${text}\r\n`)
    this.#refuseWaiting(text, (open) => this.#openLocal(open))
  }

  /** Shows the menus on its channels anew, with this notice. */
  refresh(notice: string): void {
    for (const channel of this.#channels.values()) channel.refresh(notice)
  }

  /** Closes all channels here with a reason. */
  endChannels(reason: string): void {
    for (const channel of this.#channels.values()) channel.close(`sallyport: ${reason}\r\n`, 255)
    this.#held?.close(`sallyport: ${reason}\r\n`)
    this.#refuseWaiting(reason, (open) => this.#refuse(open, OPEN_FAILURE.connectFailed, reason))
  }

  #refuseWaiting(reason: string, onSession: (open: ChannelOpen) => void): void {
    for (const message of this.takeWaiting()) {
      if (message[0] === MSG.globalRequest) {
        if (parseGlobalRequest(message).wantReply) this.#options.client.send(buildRequestFailure())
        continue
      }
      const open = parseChannelOpen(message)
      if (open.type === 'session') onSession(open)
      else this.#refuse(open, OPEN_FAILURE.connectFailed, reason)
    }
  }

  #message(payload: Buffer): void {
    switch (payload[0]) {
      case MSG.globalRequest:
        this.#globalRequest(payload)
        return
      case MSG.channelOpen:
        this.#idle.refresh()
        this.#open(parseChannelOpen(payload), payload)
        return
      case MSG.requestSuccess:
      case MSG.requestFailure:
        // Replies to keepalives: their arrival is enough.
        return
      case MSG.channelOpenConfirmation:
      case MSG.channelOpenFailure:
        if (this.#agent?.id !== recipientOf(payload)) throw new MalformedError('an answer to nothing')
        this.#agent.message(payload)
        return
      default:
        this.#idle.refresh()
        this.#channelOf(recipientOf(payload))?.message(payload)
    }
  }

  #channelOf(id: number): { message(payload: Buffer): void } | undefined {
    if (this.#agent?.id === id) return this.#agent
    return this.#held?.id === id ? this.#held : this.#channels.get(id)
  }

  #globalRequest(payload: Buffer): void {
    const { name, wantReply } = parseGlobalRequest(payload)
    const rule = ruleOf('client', 'global request', name)
    const isForwarding = rule !== undefined && isRight(rule)
    if (this.#mode.name === 'waiting' && (isForwarding || this.#requestWaits)) {
      this.#requestWaits = true
      this.#wait(payload)
      return
    }
    if (rule !== 'free') this.#denied(name)
    if (wantReply) this.#options.client.send(buildRequestFailure())
  }

  #open(open: ChannelOpen, payload: Buffer): void {
    const rule = ruleOf('client', 'channel', open.type)
    if (rule === undefined) {
      this.#denied(`channel ${open.type}`)
      this.#refuse(open, OPEN_FAILURE.administrativelyProhibited, 'this kind of channel is not allowed here')
    } else if (isRight(rule) && this.#mode.name === 'local') {
      this.#denied(`channel ${open.type}`)
      this.#refuse(open, OPEN_FAILURE.administrativelyProhibited, this.#jumpText(open, this.#mode))
    } else if (!this.#hasRoom(isRight(rule))) {
      this.#refuse(open, OPEN_FAILURE.resourceShortage, 'too many channels at a time')
    } else if (this.#mode.name === 'waiting') {
      this.#wait(payload)
    } else {
      this.#openLocal(open)
    }
  }

  /** Waiting messages are the client's: limit their channels like open ones. */
  #hasRoom(isForwarded: boolean): boolean {
    if (isForwarded) return this.#waiting.count < MAX_FORWARDED_CHANNELS
    return this.#waiting.sessions + this.#channels.size < MAX_SESSION_CHANNELS
  }

  #wait(payload: Buffer): void {
    this.#waiting.add(payload)
    this.#onWaiting?.()
    this.#showAnnounced()
    if (this.#asked) return
    this.#asked = true
    this.#options.onFirstChannel()
  }

  /** Returns why there is no target. If none was named, returns the hint instead of a jump. */
  #jumpText({ type, typeData }: ChannelOpen, { text, menu }: { text: string; menu: boolean }): string {
    if (!menu || type !== 'direct-tcpip') return text
    const { to } = parseConnection(typeData)
    return this.#options.jumpHint(addressFlaw(to) === undefined ? to.host : 'DEVICE')
  }

  #openLocal(open: ChannelOpen): void {
    if (this.#mode.name !== 'local') return
    const { text, menu, question } = this.#mode
    this.#newLocal(open, {
      text,
      ...(menu && { targets: this.#options.targets }),
      ...(question && { question }),
    })
  }

  #newLocal(
    open: ChannelOpen,
    serving: Pick<LocalOptions, 'text' | 'targets' | 'question' | 'onInterrupt'>,
  ): LocalChannel {
    const id = this.#nextId++
    const channel = new LocalChannel({
      ...serving,
      id,
      open,
      client: this.#options.client,
      takeMotd: this.#options.takeMotd,
      onChoice: (choice) => {
        if (this.#leadsOn(channel)) this.#options.onChoice(choice, channel)
      },
      onGiven: (given) => {
        if (this.#leadsOn(channel)) this.#options.onGiven(given, channel)
      },
      onClosed: () => {
        this.#channels.delete(id)
        if (channel === this.#shown) this.#shownClosed()
      },
    })
    this.#channels.set(id, channel)
    return channel
  }

  /** Makes the client wait for one target. Other channels wait with it; none may choose another target. */
  #leadsOn(channel: LocalChannel): boolean {
    if (this.#mode.name === 'waiting') {
      channel.resume('sallyport: a target is being connected on this connection already')
      return false
    }
    this.#mode = { name: 'waiting' }
    this.#asked = true
    return true
  }

  /** `what` has one character for each byte. */
  #denied(what: string): void {
    if (++this.#denials > MAX_DENIALS) throw new MalformedError('too many requests that are not allowed')
    this.#options.onDenied(displayText(Buffer.from(what, 'latin1')))
  }

  #refuse(open: ChannelOpen, reason: (typeof OPEN_FAILURE)[keyof typeof OPEN_FAILURE], text: string): void {
    this.#options.client.send(buildChannelOpenFailure(open.sender, reason, `sallyport: ${text}`))
  }
}
