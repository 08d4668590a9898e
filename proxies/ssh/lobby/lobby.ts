/**
 * The client's leg while there is no target on the other side: between sign-in and target, in the menu, and
 * when a target was refused or could not be reached. It keeps what the client asks for until the target is
 * there (`waiting`), or opens the client's channels itself to show a text or the menu (`local`).
 *
 * No right is asked here and nothing is relayed: the only ways out are the relay, and the end.
 */

import { Buffer } from 'node:buffer'
import type { Logon, LogonQuestion, TargetEntry } from '../../../src/contract/gate.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { displayText } from '../../bytes/text.ts'
import { MAX_DENIALS } from '../../session/limits.ts'
import type { AdoptedChannel } from '../channel/adopted-channel.ts'
import { MAX_FORWARDED_CHANNELS, MAX_QUEUED, MAX_SESSION_CHANNELS } from '../channel/limits.ts'
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
import { type Allowance, HeldChannel } from './held-channel.ts'
import { AGENT_REQUEST_MS, LOBBY_IDLE_MS } from './limits.ts'
import { LocalChannel } from './local.ts'

export interface LobbyOptions {
  client: ClientLeg
  /** The first channel is asked for: time to connect the target. */
  onFirstChannel: () => void
  /** What the first terminal of the connection is shown, once. */
  takeMotd: () => string | undefined
  /** A terminal is there and the user may choose. Answers with the targets to choose from. */
  targets: () => Promise<{ targets: TargetEntry[]; total: number }>
  onChoice: (choice: TargetEntry, channel: LocalChannel) => void
  /** What the user has typed to log in with, at the target that the channel has asked for. */
  onLogon: (logon: Logon, channel: LocalChannel) => void
  /** What somebody is told who wants to go on from here to a device by a channel of a connection. */
  jumpHint: (device: string) => string
  /** Something was refused that is not allowed anywhere on the bastion, or not without a target. */
  onDenied: (what: string) => void
  /** The client breaks the protocol. */
  onBreach: () => void
  /** It has asked for nothing for too long. */
  onIdle: () => void
}

type Mode =
  | { name: 'waiting' }
  /** `text` is what every channel is told that gets no menu, and before the question if there is one. */
  | { name: 'local'; text: string; menu: boolean; question?: LogonQuestion }

export class Lobby {
  readonly #options: LobbyOptions
  /** Copies of messages for the relay, in order, and their bytes. */
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  /** A global request waits: those behind it wait for their answers too (RFC 4254 4). */
  #requestWaits = false
  readonly #channels = new Map<number, LocalChannel>()
  readonly #keepalive: Keepalive
  /** The first session channel, where the client was waited for to say whether it forwards its agent. */
  #held: HeldChannel | undefined
  #agent: ClientAgent | undefined
  /** While the session channel is waited for: one more message waits, and nobody waits any longer. */
  #onWaiting: (() => void) | undefined
  #giveUpAgent: (() => void) | undefined
  #mode: Mode
  readonly #idle: NodeJS.Timeout
  #nextId = 0
  #asked = false
  #denials = 0

  constructor(options: LobbyOptions, mode: Mode) {
    this.#options = options
    this.#mode = mode
    const { client } = options
    this.#keepalive = new Keepalive([{ transport: client, onSilent: () => client.destroy() }])
    this.#idle = setTimeout(() => options.onIdle(), LOBBY_IDLE_MS)
    client.onMessage = (payload) => {
      try {
        this.#message(payload)
      } catch (error) {
        if (!(error instanceof MalformedError)) throw error
        options.onBreach()
      }
      // Who does not read the answers is not heard either.
      if (client.flooded) client.paused = true
    }
    client.onDrain = () => {
      client.paused = false
    }
  }

  /** The client has left the lobby: for the target, or for good. */
  close(): void {
    this.#keepalive.stop()
    clearTimeout(this.#idle)
    this.#giveUpAgent?.()
    this.#agent?.close()
  }

  /**
   * The user's agent, on a channel that this opens; undefined: it is not forwarded. `chosen` is the menu's channel where
   * the target was chosen; otherwise the first session channel that waits is opened to hear whether it asks for
   * forwarding. `may`: what the session allows.
   */
  async agent(chosen: LocalChannel | undefined, may: Allowance): Promise<ClientAgent | undefined> {
    const isForwarded = chosen ? chosen.hasAgent : await this.#isAgentForwarded(may)
    if (!isForwarded || this.#options.client.closed) return undefined
    this.#agent = new ClientAgent(this.#nextId++, (payload) => this.#options.client.send(payload))
    return this.#agent
  }

  /** The channel that was opened for the question after the agent, for the relay. */
  releaseHeld(): AdoptedChannel | undefined {
    return this.#held?.handOver()
  }

  /** A session channel may come after what else the client asks for, such as its listeners. */
  #isAgentForwarded(may: Allowance): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isForwarded: boolean): void => {
        clearTimeout(timer)
        this.#onWaiting = undefined
        this.#giveUpAgent = undefined
        resolve(isForwarded)
      }
      const hold = (): void => {
        const open = this.#takeSessionOpen()
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

  #takeSessionOpen(): ChannelOpen | undefined {
    const index = this.#waiting.findIndex(
      (message) => message[0] === MSG.channelOpen && parseChannelOpen(message).type === 'session',
    )
    if (index === -1) return undefined
    const [message] = this.#waiting.splice(index, 1)
    this.#waitingBytes -= message!.length
    return parseChannelOpen(message!)
  }

  /** The lowest channel number that was not given to the client. */
  get nextId(): number {
    return this.#nextId
  }

  /** The client goes on to a target: the channels that it has open here, but this one, end. */
  leaveBehind(chosen: LocalChannel | undefined): void {
    for (const channel of this.#channels.values()) {
      if (channel !== chosen) channel.close('sallyport: a target was chosen on this connection\r\n', 255)
    }
  }

  /** What the client has asked for so far, message by message; the relay goes on from there. */
  takeWaiting(): Buffer[] {
    this.#waitingBytes = 0
    this.#requestWaits = false
    return this.#waiting.splice(0)
  }

  /** There is no target: tell every channel so, or let the user choose another, or ask them on a terminal. */
  goLocal(text: string, menu: boolean, question?: LogonQuestion): void {
    this.#mode = { name: 'local', text, menu, ...(question && { question }) }
    this.#held?.close(`sallyport: ${text}\r\n`)
    this.#refuseWaiting(text, (open) => this.#openLocal(open))
  }

  /** Ends what is open here, with a reason. */
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
        // Answers to keepalives: that they came is what counts.
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

  /** What waits is messages of the client: as many channels at most. */
  #hasRoom(isForwarded: boolean): boolean {
    if (isForwarded) return this.#waiting.length < MAX_FORWARDED_CHANNELS
    const waiting = this.#waiting.filter(
      (message) => message[0] === MSG.channelOpen && parseChannelOpen(message).type === 'session',
    )
    return waiting.length + this.#channels.size < MAX_SESSION_CHANNELS
  }

  /** A copy: the next read overwrites the message. */
  #wait(payload: Buffer): void {
    this.#waitingBytes += payload.length
    if (this.#waitingBytes > MAX_QUEUED) throw new MalformedError('too many messages before an answer')
    this.#waiting.push(Buffer.from(payload))
    this.#onWaiting?.()
    if (this.#asked) return
    this.#asked = true
    this.#options.onFirstChannel()
  }

  /** Why there is no target; where none was named, what to do instead of a jump. */
  #jumpText({ type, typeData }: ChannelOpen, { text, menu }: { text: string; menu: boolean }): string {
    if (!menu || type !== 'direct-tcpip') return text
    const { to } = parseConnection(typeData)
    return this.#options.jumpHint(addressFlaw(to) === undefined ? to.host : 'DEVICE')
  }

  #openLocal(open: ChannelOpen): void {
    if (this.#mode.name !== 'local') return
    const { text, menu, question } = this.#mode
    const id = this.#nextId++
    const channel = new LocalChannel({
      id,
      open,
      client: this.#options.client,
      text,
      ...(menu && { targets: this.#options.targets }),
      ...(question && { question }),
      takeMotd: this.#options.takeMotd,
      onChoice: (choice) => {
        if (this.#leadsOn(channel)) this.#options.onChoice(choice, channel)
      },
      onLogon: (logon) => {
        if (this.#leadsOn(channel)) this.#options.onLogon(logon, channel)
      },
      onClosed: () => this.#channels.delete(id),
    })
    this.#channels.set(id, channel)
  }

  /** From now on the client waits for one target: other channels wait with it, and none leads to another. */
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
