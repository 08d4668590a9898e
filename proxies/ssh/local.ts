/**
 * A session channel that the bastion itself serves: it shows a text and ends with 255, or, where a terminal is
 * at hand, the menu of targets.
 */
import { Buffer } from 'node:buffer'
import type { TargetEntry } from '../../src/gate/messages.ts'
import {
  buildChannelFailure,
  buildChannelOpenConfirmation,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEnv,
  buildEof,
  buildExitStatus,
  buildExtendedData,
  buildPtyRequest,
  buildShell,
  buildWindowAdjust,
} from './codec/build.ts'
import {
  type ChannelOpen,
  type ChannelRequest,
  dataOf,
  MSG,
  parseChannelRequest,
  windowAdjustOf,
} from './codec/messages.ts'
import { MalformedError } from './codec/reader.ts'
import { type PtyRequest, parseEnv, parsePtyRequest, parseWindowChange } from './codec/requests.ts'
import { mayPass } from './environment.ts'
import { MAX_CHANNEL_PACKET, MENU_WINDOW } from './limits.ts'
import type { AdoptedChannel } from './lobby.ts'
import { TargetMenu } from './menu.ts'
import { MAIN_REQUESTS } from './request.ts'
import type { Transport } from './transport.ts'

const MAX_VARIABLES = 32
/** RFC 4254 5.2. */
const LARGEST_WINDOW = 0xffffffff

export interface LocalOptions {
  id: number
  open: ChannelOpen
  client: Transport
  /** What a channel without menu is told. */
  text: string
  /** Present: a shell with a terminal gets the menu of these. */
  targets?: () => Promise<{ targets: TargetEntry[]; total: number }>
  onChoice: (choice: TargetEntry) => void
  onGone: () => void
}

export class LocalChannel {
  readonly #options: LocalOptions
  readonly #clientId: number
  /** Bytes that the client still takes. */
  #window: number
  /** Bytes that the client may still send. */
  #credit = MENU_WINDOW
  #terminal: PtyRequest | undefined
  readonly #variables: { name: string; value: Uint8Array }[] = []
  #menu: TargetMenu | undefined
  /** The user has chosen and waits; only Ctrl-C is of interest. */
  #onInterrupt: (() => void) | undefined
  #begun = false
  #finished = false

  constructor(options: LocalOptions) {
    this.#options = options
    this.#clientId = options.open.sender
    this.#window = options.open.window
    options.client.send(
      buildChannelOpenConfirmation({
        recipient: this.#clientId,
        sender: options.id,
        window: this.#credit,
        maxPacket: MAX_CHANNEL_PACKET,
      }),
    )
  }

  message(payload: Buffer): void {
    switch (payload[0]) {
      case MSG.channelData: {
        const data = dataOf(payload)
        if (data.length > this.#credit) throw new MalformedError('more data than the window allows')
        this.#credit -= data.length
        if (!this.#finished) this.#typed(data)
        return
      }
      case MSG.channelWindowAdjust:
        this.#window += windowAdjustOf(payload)
        if (this.#window > LARGEST_WINDOW) throw new MalformedError('the window is over 2^32-1')
        return
      case MSG.channelRequest:
        this.#request(parseChannelRequest(payload))
        return
      case MSG.channelClose:
        if (!this.#finished) this.#options.client.send(buildClose(this.#clientId))
        this.#finished = true
        this.#onInterrupt?.()
        this.#options.onGone()
        return
      default:
        return
    }
  }

  /** Shows a last text on standard error and closes. */
  finish(text: string, status: number): void {
    if (this.#finished) return
    this.#finished = true
    const { client } = this.#options
    const bytes = this.#fit(text)
    if (bytes.length > 0) client.send(buildExtendedData(this.#clientId, bytes))
    client.send(buildExitStatus(this.#clientId, status))
    client.send(buildEof(this.#clientId))
    client.send(buildClose(this.#clientId))
  }

  /** Shows a line while the target is being connected; `onInterrupt` is called when the user gives up. */
  wait(text: string, onInterrupt: () => void): void {
    this.#onInterrupt = onInterrupt
    this.#show(text)
  }

  /** The target could not be opened: the menu again, with the reason. */
  resume(notice: string): void {
    this.#onInterrupt = undefined
    if (this.#menu) this.#show(this.#menu.start(notice))
  }

  /** Hands the channel over to the relay; it must not be used afterwards. */
  release(): AdoptedChannel | undefined {
    if (this.#finished || !this.#terminal) return undefined
    this.#finished = true
    const { id, open } = this.#options
    return {
      id,
      client: { id: this.#clientId, window: this.#window, maxPacket: open.maxPacket },
      credit: this.#credit,
      messages: [
        ...this.#variables.map(({ name, value }) => buildEnv(id, false, name, value)),
        buildPtyRequest(id, false, this.#terminal),
        buildShell(id, true),
      ],
    }
  }

  #request(request: ChannelRequest): void {
    if (this.#finished) return
    if (MAIN_REQUESTS.has(request.type)) {
      this.#main(request)
      return
    }
    let granted = false
    if (request.type === 'pty-req' && !this.#terminal && !this.#begun) {
      const terminal = parsePtyRequest(request.data)
      // Copies, here and below: the next read overwrites what the message is a view into.
      this.#terminal = { ...terminal, modes: Uint8Array.from(terminal.modes) }
      granted = true
    } else if (request.type === 'window-change') {
      const size = parseWindowChange(request.data)
      if (this.#terminal) this.#terminal = { ...this.#terminal, ...size }
      this.#menu?.resize(size)
      granted = true
    } else if (request.type === 'env' && this.#variables.length < MAX_VARIABLES) {
      const { name, value } = parseEnv(request.data)
      granted = mayPass(name, value)
      if (granted) this.#variables.push({ name, value: Uint8Array.from(value) })
    }
    this.#answer(request, granted)
  }

  #main(request: ChannelRequest): void {
    this.#answer(request, !this.#begun)
    if (this.#begun) return
    this.#begun = true
    const { targets, text } = this.#options
    if (request.type !== 'shell' || !this.#terminal || !targets) {
      this.finish(`sallyport: ${text}\r\n`, 255)
      return
    }
    targets().then(
      ({ targets: list, total }) => {
        if (this.#finished || !this.#terminal) return
        if (list.length === 0) {
          this.finish('sallyport: there is no target that you may open\r\n', 255)
          return
        }
        this.#menu = new TargetMenu(list, total, this.#terminal)
        this.#show(this.#menu.start())
      },
      () => this.finish('sallyport: the list of targets cannot be read, try again later\r\n', 255),
    )
  }

  #typed(data: Uint8Array): void {
    if (this.#onInterrupt) {
      if (data.includes(0x03)) this.#onInterrupt()
    } else if (this.#menu) {
      const step = this.#menu.type(data)
      this.#show(step.show)
      if ('quit' in step) this.finish('', 0)
      else if ('choice' in step) this.#options.onChoice(step.choice)
    }
    if (!this.#finished && this.#credit < MENU_WINDOW / 2) {
      this.#options.client.send(buildWindowAdjust(this.#clientId, MENU_WINDOW - this.#credit))
      this.#credit = MENU_WINDOW
    }
  }

  #show(text: string): void {
    if (this.#finished) return
    const bytes = this.#fit(text)
    if (bytes.length > 0) this.#options.client.send(buildData(this.#clientId, bytes))
  }

  /** What of a text the client's window and packet size take; the rest is not worth waiting for. */
  #fit(text: string): Buffer {
    const limit = Math.min(this.#window, this.#options.open.maxPacket, MAX_CHANNEL_PACKET)
    const bytes = Buffer.from(text).subarray(0, limit)
    this.#window -= bytes.length
    return bytes
  }

  #answer(request: ChannelRequest, granted: boolean): void {
    if (!request.wantReply) return
    this.#options.client.send((granted ? buildChannelSuccess : buildChannelFailure)(this.#clientId))
  }
}
