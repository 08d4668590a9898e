/**
 * A session channel that the bastion serves itself. It shows a text and exits with 255; on a terminal it
 * shows the menu of targets, and prompts for a login at one of them or for the reason of the session. While it
 * waits for a target or for an approval, it lets nothing through: a terminal's input is dropped, other input is
 * not accepted yet.
 */
import { Buffer } from 'node:buffer'
import type { TargetEntry } from '../../../src/contract/gate.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { NO_REASON } from '../../wording/reason.ts'
import type { AdoptedChannel } from '../channel/adopted-channel.ts'
import { MAX_CHANNEL_PACKET } from '../channel/limits.ts'
import {
  buildChannelFailure,
  buildChannelOpenConfirmation,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEof,
  buildExitStatus,
  buildExtendedData,
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
import { parseWindowChange } from '../codec/requests.ts'
import { MAIN_REQUESTS } from '../policy/request.ts'
import type { ClientLeg } from '../transport/leg.ts'
import { type Dialog, dialogOf, type Given, isNeeded, type Question, timeFor, wordsFor } from './dialogs.ts'
import { MAX_ANNOUNCED, MENU_WINDOW } from './limits.ts'
import { TargetMenu } from './menu.ts'
import { PreparedRequests } from './prepared.ts'

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
  /** If set, the channel waits for a target, whatever it asks for. Called if the user gives up. */
  onInterrupt?: () => void
  /** If set, a shell with a terminal shows a menu of these targets. */
  targets?: () => Promise<{ targets: TargetEntry[]; total: number }>
  /** If set, a shell with a terminal asks this question. */
  question?: Question
  /** Returns the text above the menu, once per connection. */
  takeMotd: () => string | undefined
  onChoice: (choice: TargetEntry) => void
  /** Called with the answer to the last question. */
  onGiven: (given: Given) => void
  onClosed: () => void
}

export class LocalChannel {
  readonly #options: LocalOptions
  readonly #clientId: number
  /** Bytes that the client still accepts. */
  #window: number
  /** Bytes that the client may still send. */
  #credit: number
  /** Typed, not yet processed. */
  #input: Buffer = NOTHING
  /** Set if a line was processed in this turn of the event loop: the next line waits for another turn. */
  #turn: NodeJS.Immediate | undefined
  readonly #prepared = new PreparedRequests()
  #menu: TargetMenu | undefined
  /** Set if the menu's targets have changed while something else was shown. */
  #isStale = false
  #dialog: Dialog | undefined
  #dialogTimer: NodeJS.Timeout | undefined
  /** Set while the channel waits for its target: only Ctrl-C is read. */
  #onInterrupt: (() => void) | undefined
  /** Text to show as soon as the client has asked for a program. */
  #unshown = ''
  #begun = false
  #isShell = false
  #finished = false

  constructor(options: LocalOptions) {
    this.#options = options
    this.#clientId = options.open.sender
    this.#window = options.open.window
    // Without a terminal, input is for the target alone.
    this.#credit = options.targets ? MENU_WINDOW : 0
    this.#onInterrupt = options.onInterrupt
    if (options.onInterrupt) this.#unshown = options.text
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
        this.#request(parseChannelRequest(payload), payload)
        return
      case MSG.channelEof:
        this.#prepared.isEnded = this.#options.targets === undefined
        return
      case MSG.channelClose:
        if (!this.#finished) this.#options.client.send(buildClose(this.#clientId))
        this.#end()
        // One that shows why the client waits is not all that waits.
        if (this.#onInterrupt !== this.#options.onInterrupt) this.#onInterrupt?.()
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
    this.say(text)
  }

  /** Shows a text: on the terminal, or on standard error. */
  say(text: string): void {
    if (this.#begun) this.#show(text)
    else this.#unshown = `${this.#unshown}${text}`.slice(-MAX_ANNOUNCED)
  }

  /** Whether the user can be asked. */
  get canAsk(): boolean {
    return this.#isShell && this.#prepared.terminal !== undefined && !this.#finished
  }

  /** Shows the menu again with the reason of a failed connection. Without a menu, closes with it. */
  resume(notice: string): void {
    this.#onInterrupt = undefined
    this.#closeDialog()
    if (this.#menu && this.#isStale) this.#renew(notice)
    else if (this.#menu) this.#show(this.#menu.start(notice))
    else this.close(`${notice}\r\n`, 255)
  }

  /** Puts the question to the user; without a terminal, closes with it. `notice`: why it is repeated. */
  ask(question: Question, notice?: string): void {
    this.#onInterrupt = undefined
    this.#closeDialog()
    if (this.#finished) return
    if (!this.canAsk) {
      this.#withoutTerminal(question)
      return
    }
    this.#dialog = dialogOf(question)
    this.#dialogTimer = setTimeout(
      () => this.resume('sallyport: nothing was answered in time'),
      timeFor(question),
    )
    this.#show(this.#dialog.start(notice))
  }

  #withoutTerminal(question: Question): void {
    if (isNeeded(question)) this.close(`sallyport: ${wordsFor(question, this.#options.text)}\r\n`, 255)
    else this.#options.onGiven({ reason: NO_REASON })
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
    return this.#prepared.hasAgent
  }

  /** Hands the channel over to the relay. It must not be used afterwards. */
  handOver(): AdoptedChannel | undefined {
    if (this.#finished) return undefined
    this.#end()
    const { id, open } = this.#options
    return {
      id,
      client: { id: this.#clientId, window: this.#window, maxPacket: open.maxPacket },
      credit: this.#credit,
      isAnswered: this.#begun,
      messages: this.#prepared.messages(id),
    }
  }

  #request(request: ChannelRequest, payload: Buffer): void {
    if (this.#finished) return
    if (MAIN_REQUESTS.has(request.type)) {
      this.#main(request, payload)
      return
    }
    const { targets, question, onInterrupt } = this.#options
    const mayWish = targets !== undefined || question !== undefined || onInterrupt !== undefined
    const granted = this.#prepared.take(request, mayWish)
    if (request.type === 'window-change') this.#menu?.resize(parseWindowChange(request.data))
    this.#answer(request, granted)
  }

  #main(request: ChannelRequest, payload: Buffer): void {
    this.#answer(request, !this.#begun)
    if (this.#begun) return
    this.#begun = true
    this.#isShell = request.type === 'shell'
    this.#prepared.begin(payload)
    const { terminal } = this.#prepared
    if (terminal) this.#widen()
    const { targets, question, text } = this.#options
    if (this.#onInterrupt) {
      this.#show(this.#unshown)
      return
    }
    if (question) {
      this.ask(question, 'reason' in question ? undefined : `sallyport: ${text}`)
      return
    }
    if (!this.canAsk || !terminal || !targets) {
      this.close(`sallyport: ${text}\r\n`, 255)
      return
    }
    this.#showMenu(targets, terminal)
  }

  #showMenu(
    targets: NonNullable<LocalOptions['targets']>,
    terminal: { columns: number; rows: number },
    notice?: string,
  ): void {
    this.#isStale = false
    targets().then(
      ({ targets: list, total }) => {
        if (this.#finished) return
        if (list.length === 0) {
          this.close('sallyport: there is no target that you may open\r\n', 255)
          return
        }
        this.#menu = new TargetMenu(list, total, this.#prepared.terminal ?? terminal)
        // A target was chosen meanwhile: its end shows the menu.
        if (this.#isBusy) return
        this.#show(this.#options.takeMotd() ?? '')
        this.#show(this.#menu.start(notice))
      },
      () => this.close('sallyport: the list of targets cannot be read, try again later\r\n', 255),
    )
  }

  /** Whether something else than the menu is on the terminal. */
  get #isBusy(): boolean {
    return this.#onInterrupt !== undefined || this.#dialog !== undefined
  }

  /** Shows the menu anew, with this notice, if there is one; at once, or when it is there again. */
  refresh(notice: string): void {
    if (!this.#menu || this.#finished) return
    this.#isStale = true
    if (!this.#isBusy) this.#renew(`sallyport: ${notice}`)
  }

  #renew(notice: string): void {
    const { targets } = this.#options
    const { terminal } = this.#prepared
    if (!targets || !terminal) return
    this.#show('\r\n')
    this.#showMenu(targets, terminal, notice)
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
    this.#widen()
  }

  /** Accepts as much input as a user of a terminal types. */
  #widen(): void {
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

  #answered(step: ReturnType<Dialog['type']>): void {
    this.#show(step.show)
    if ('quit' in step) this.resume('sallyport: the question was not answered')
    else if ('logon' in step || 'reason' in step || 'factor' in step) {
      this.#closeDialog()
      const { show: _, ...given } = step
      this.#options.onGiven(given)
    }
  }

  #show(text: string): void {
    if (this.#finished) return
    const bytes = this.#fit(text)
    const build = this.#prepared.terminal ? buildData : buildExtendedData
    if (bytes.length > 0) this.#options.client.send(build(this.#clientId, bytes))
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
