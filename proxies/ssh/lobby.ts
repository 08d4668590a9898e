/**
 * The client's leg while there is no target on the other side: between sign-in and target, in the menu, and
 * when a target was refused or could not be reached. It keeps what the client asks for until the target is
 * there (`waiting`), or opens the client's channels itself to show a text or the menu (`local`).
 *
 * No right is asked here and nothing is relayed: the only ways out are the relay, and the end.
 */
import type { Buffer } from 'node:buffer'
import type { TargetEntry } from '../../src/gate/messages.ts'
import { buildChannelOpenFailure, buildRequestFailure } from './codec/build.ts'
import {
  type ChannelOpen,
  MSG,
  OPEN_FAILURE,
  parseChannelOpen,
  parseGlobalRequest,
  recipientOf,
} from './codec/messages.ts'
import { MalformedError } from './codec/reader.ts'
import { Keepalive } from './keepalive.ts'
import { MAX_CHANNELS } from './limits.ts'
import { LocalChannel } from './local.ts'
import type { Transport } from './transport.ts'

/** A channel of the menu on its way to the relay. */
export interface AdoptedChannel {
  id: number
  client: { id: number; window: number; maxPacket: number }
  /** Bytes that the client may still send without a further grant. */
  credit: number
  /** env, pty-req with the present size, and shell: what the client had asked for. */
  messages: Buffer[]
}

export interface LobbyOptions {
  client: Transport
  /** The first channel is asked for: time to connect the target. */
  onFirstChannel: () => void
  /** A terminal is there and the user may choose. Answers with the targets to choose from. */
  targets: () => Promise<{ targets: TargetEntry[]; total: number }>
  onChoice: (choice: TargetEntry, channel: LocalChannel) => void
  /** The client breaks the protocol. */
  onBreach: () => void
}

type Mode =
  | { name: 'waiting' }
  /** `text` is what every channel is told that gets no menu. */
  | { name: 'local'; text: string; menu: boolean }

export class Lobby {
  readonly #options: LobbyOptions
  readonly #waiting: ChannelOpen[] = []
  readonly #channels = new Map<number, LocalChannel>()
  readonly #keepalive: Keepalive
  #mode: Mode
  #nextId = 0
  #asked = false

  constructor(options: LobbyOptions, mode: Mode) {
    this.#options = options
    this.#mode = mode
    const { client } = options
    this.#keepalive = new Keepalive([{ transport: client, onSilent: () => client.destroy() }])
    client.onMessage = (payload) => {
      try {
        this.#message(payload)
      } catch (error) {
        if (!(error instanceof MalformedError)) throw error
        options.onBreach()
      }
    }
  }

  /** The client has left the lobby: for the target, or for good. */
  close(): void {
    this.#keepalive.stop()
  }

  /** What the client has asked for so far; the relay goes on from there. */
  takeWaiting(): ChannelOpen[] {
    return this.#waiting.splice(0)
  }

  /** There is no target: tell every channel so, or let the user choose another. */
  goLocal(text: string, menu: boolean): void {
    this.#mode = { name: 'local', text, menu }
    for (const open of this.takeWaiting()) this.#openLocal(open)
  }

  /** Ends what is open here, with a reason. */
  end(reason: string): void {
    for (const channel of this.#channels.values()) channel.finish(`sallyport: ${reason}\r\n`, 255)
    for (const open of this.takeWaiting()) this.#refuse(open, OPEN_FAILURE.connectFailed, reason)
  }

  #message(payload: Buffer): void {
    switch (payload[0]) {
      case MSG.globalRequest:
        if (parseGlobalRequest(payload).wantReply) this.#options.client.send(buildRequestFailure())
        return
      case MSG.channelOpen:
        this.#open(parseChannelOpen(payload))
        return
      case MSG.requestSuccess:
      case MSG.requestFailure:
        // Answers to keepalives: that they came is what counts.
        return
      case MSG.channelOpenConfirmation:
      case MSG.channelOpenFailure:
        throw new MalformedError('an answer to nothing')
      default:
        this.#channels.get(recipientOf(payload))?.message(payload)
    }
  }

  #open(open: ChannelOpen): void {
    if (open.type !== 'session') {
      this.#refuse(open, OPEN_FAILURE.administrativelyProhibited, 'this kind of channel is not allowed here')
    } else if (this.#waiting.length + this.#channels.size >= MAX_CHANNELS) {
      this.#refuse(open, OPEN_FAILURE.resourceShortage, `at most ${MAX_CHANNELS} channels at a time`)
    } else if (this.#mode.name === 'waiting') {
      // Without the view into the message, which the next read overwrites; a session channel has no type data.
      this.#waiting.push({ ...open, typeData: new Uint8Array(0) })
      if (!this.#asked) {
        this.#asked = true
        this.#options.onFirstChannel()
      }
    } else {
      this.#openLocal(open)
    }
  }

  #openLocal(open: ChannelOpen): void {
    if (this.#mode.name !== 'local') return
    const { text, menu } = this.#mode
    const id = this.#nextId++
    const channel = new LocalChannel({
      id,
      open,
      client: this.#options.client,
      text,
      ...(menu && { targets: this.#options.targets }),
      onChoice: (choice) => {
        // From now on the client waits for one target: other channels wait with it.
        this.#mode = { name: 'waiting' }
        this.#asked = true
        this.#options.onChoice(choice, channel)
      },
      onGone: () => this.#channels.delete(id),
    })
    this.#channels.set(id, channel)
  }

  #refuse(open: ChannelOpen, reason: (typeof OPEN_FAILURE)[keyof typeof OPEN_FAILURE], text: string): void {
    this.#options.client.send(buildChannelOpenFailure(open.sender, reason, `sallyport: ${text}`))
  }
}
