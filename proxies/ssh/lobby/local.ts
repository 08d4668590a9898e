/**
 * A session channel that the bastion serves itself. It shows a text and exits with 255; on a terminal it
 * shows the menu of targets, and prompts for a login at one of them.
 */
import { Buffer } from 'node:buffer'
import type { Logon, LogonQuestion, TargetEntry } from '../../../src/contract/gate.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import type { AdoptedChannel } from '../channel/adopted-channel.ts'
import { MAX_CHANNEL_PACKET } from '../channel/limits.ts'
import {
  buildChannelFailure,
  buildChannelOpenConfirmation,
  buildChannelRequest,
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
} from '../codec/build.ts'
import {
  type ChannelOpen,
  type ChannelRequest,
  dataOf,
  MSG,
  parseChannelRequest,
  windowAdjustOf,
} from '../codec/messages.ts'
import { type PtyRequest, parseEnv, parsePtyRequest, parseWindowChange } from '../codec/requests.ts'
import { mayPass } from '../policy/environment.ts'
import { MAIN_REQUESTS } from '../policy/request.ts'
import type { ClientLeg } from '../transport/leg.ts'
import { LOGON_TIMEOUT_MS, MENU_WINDOW } from './limits.ts'
import { LogonDialog, type LogonStep } from './logon-dialog.ts'
import { TargetMenu } from './menu.ts'

const MAX_VARIABLES = 32
const AGENT_REQUEST = 'auth-agent-req@openssh.com'
const WISHES: ReadonlySet<string> = new Set(['x11-req', AGENT_REQUEST])
/** Largest request for X11 in bytes: its protocol and cookie have under 100. */
const MAX_WISH = 1024
/** RFC 4254 5.2. */
const LARGEST_WINDOW = 0xffffffff
const NOTHING = Buffer.alloc(0)
const LINE_FEED = 0x0a
const RETURN = 0x0d

export interface LocalOptions {
  id: number
  open: ChannelOpen
  client: ClientLeg
  /** Shown on a channel without menu. */
  text: string
  /** If set, a shell with a terminal shows a menu of these targets. */
  targets?: () => Promise<{ targets: TargetEntry[]; total: number }>
  /** If set, a shell with a terminal asks this question. */
  question?: LogonQuestion
  /** Returns the text above the menu, once per connection. */
  takeMotd: () => string | undefined
  onChoice: (choice: TargetEntry) => void
  /** Called with the answer to the last question. */
  onLogon: (logon: Logon) => void
  onClosed: () => void
}

export class LocalChannel {
  readonly #options: LocalOptions
  readonly #clientId: number
  /** Bytes that the client still accepts. */
  #window: number
  /** Bytes that the client may still send. */
  #credit = MENU_WINDOW
  /** Typed, not yet processed. */
  #input: Buffer = NOTHING
  /** Set if a line was processed in this turn of the event loop: the next line waits for another turn. */
  #turn: NodeJS.Immediate | undefined
  #terminal: PtyRequest | undefined
  /** The client's requests for its display and agent, for the chosen target. */
  readonly #wishes = new Map<string, Uint8Array>()
  readonly #variables: { name: string; value: Uint8Array }[] = []
  #menu: TargetMenu | undefined
  #dialog: LogonDialog | undefined
  #dialogTimer: NodeJS.Timeout | undefined
  /** Set after the user's choice: only Ctrl-C is read until the target is connected. */
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
        if (this.#finished) return
        this.#input = Buffer.concat([this.#input, data])
        if (!this.#turn) this.#nextLine()
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
        this.#end()
        this.#onInterrupt?.()
        this.#options.onClosed()
        return
      default:
        return
    }
  }

  /** Shows a last text on standard error and closes the channel. */
  close(text: string, status: number): void {
    if (this.#finished) return
    this.#end()
    const { client } = this.#options
    const bytes = this.#fit(text)
    if (bytes.length > 0) client.send(buildExtendedData(this.#clientId, bytes))
    client.send(buildExitStatus(this.#clientId, status))
    client.send(buildEof(this.#clientId))
    client.send(buildClose(this.#clientId))
  }

  /** Shows a line while the target is being connected. Calls `onInterrupt` if the user cancels. */
  wait(text: string, onInterrupt: () => void): void {
    this.#onInterrupt = onInterrupt
    this.#show(text)
  }

  /** Shows the menu again with the reason of a failed connection. Without a menu, closes with it. */
  resume(notice: string): void {
    this.#onInterrupt = undefined
    this.#closeDialog()
    if (this.#menu) this.#show(this.#menu.start(notice))
    else this.close(`${notice}\r\n`, 255)
  }

  /** Prompts for the user's login at the target. `notice`: why the prompt is repeated. */
  ask(question: LogonQuestion, notice?: string): void {
    this.#onInterrupt = undefined
    this.#closeDialog()
    if (this.#finished) return
    this.#dialog = new LogonDialog(question)
    this.#dialogTimer = setTimeout(
      () => this.resume('sallyport: nothing was answered in time'),
      LOGON_TIMEOUT_MS,
    )
    this.#show(this.#dialog.start(notice))
  }

  #closeDialog(): void {
    clearTimeout(this.#dialogTimer)
    this.#dialog = undefined
  }

  #end(): void {
    this.#finished = true
    clearImmediate(this.#turn)
    this.#input = NOTHING
    this.#closeDialog()
  }

  /** Whether the client forwards its agent. */
  get hasAgent(): boolean {
    return this.#wishes.has(AGENT_REQUEST)
  }

  /** Hands the channel over to the relay. It must not be used afterwards. */
  handOver(): AdoptedChannel | undefined {
    if (this.#finished || !this.#terminal) return undefined
    this.#end()
    const { id, open } = this.#options
    return {
      id,
      client: { id: this.#clientId, window: this.#window, maxPacket: open.maxPacket },
      credit: this.#credit,
      isAnswered: true,
      messages: [
        ...[...this.#wishes].map(([type, data]) => buildChannelRequest(id, type, false, data)),
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
      // Copies, here and below: the next read overwrites the message.
      this.#terminal = { ...terminal, modes: Uint8Array.from(terminal.modes) }
      granted = true
    } else if (request.type === 'window-change') {
      const size = parseWindowChange(request.data)
      if (this.#terminal) this.#terminal = { ...this.#terminal, ...size }
      this.#menu?.resize(size)
      granted = true
    } else if (WISHES.has(request.type) && !this.#wishes.has(request.type) && !this.#begun) {
      // The right for it is checked when the request is sent to the target.
      const { targets, question } = this.#options
      granted = (targets !== undefined || question !== undefined) && request.data.length <= MAX_WISH
      if (granted) this.#wishes.set(request.type, Uint8Array.from(request.data))
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
    const { targets, question, text } = this.#options
    const isTerminal = request.type === 'shell' && this.#terminal !== undefined
    if (isTerminal && question) {
      this.ask(question, `sallyport: ${text}`)
      return
    }
    if (!isTerminal || !targets) {
      this.close(`sallyport: ${text}\r\n`, 255)
      return
    }
    targets().then(
      ({ targets: list, total }) => {
        if (this.#finished || !this.#terminal) return
        if (list.length === 0) {
          this.close('sallyport: there is no target that you may open\r\n', 255)
          return
        }
        this.#show(this.#options.takeMotd() ?? '')
        this.#menu = new TargetMenu(list, total, this.#terminal)
        this.#show(this.#menu.start())
      },
      () => this.close('sallyport: the list of targets cannot be read, try again later\r\n', 255),
    )
  }

  /**
   * Processes one line per turn of the event loop: a line can be costly (a search of thousands of targets),
   * and must not delay other sessions.
   */
  #nextLine(): void {
    const end = this.#input.findIndex((byte) => byte === RETURN || byte === LINE_FEED)
    const size = end === -1 ? this.#input.length : end + 1
    const line = this.#input.subarray(0, size)
    this.#input = this.#input.subarray(size)
    this.#typed(line)
    if (this.#finished) return
    if (end !== -1)
      this.#turn = setImmediate(() => {
        this.#turn = undefined
        if (this.#input.length > 0) this.#nextLine()
      })
    const known = this.#credit + this.#input.length
    if (known >= MENU_WINDOW / 2) return
    this.#options.client.send(buildWindowAdjust(this.#clientId, MENU_WINDOW - known))
    this.#credit += MENU_WINDOW - known
  }

  #typed(data: Uint8Array): void {
    if (this.#onInterrupt) {
      if (data.includes(0x03)) this.#onInterrupt()
    } else if (this.#dialog) {
      this.#answered(this.#dialog.type(data))
    } else if (this.#menu) {
      const step = this.#menu.type(data)
      this.#show(step.show)
      if ('quit' in step) this.close('', 0)
      else if ('choice' in step) this.#options.onChoice(step.choice)
    }
  }

  #answered(step: LogonStep): void {
    this.#show(step.show)
    if ('quit' in step) this.resume('sallyport: no password was given')
    else if ('logon' in step) {
      this.#closeDialog()
      this.#options.onLogon(step.logon)
    }
  }

  #show(text: string): void {
    if (this.#finished) return
    const bytes = this.#fit(text)
    if (bytes.length > 0) this.#options.client.send(buildData(this.#clientId, bytes))
  }

  /** Cuts a text to the client's window and packet size; the rest is dropped rather than kept waiting. */
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
