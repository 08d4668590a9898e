/** The viewer's way to the target: message by message, held to what the session may do. */

import {
  encodeClientCutText,
  encodeClientFence,
  encodeContinuousUpdates,
  encodeExtendedClientCutText,
  encodeExtendedPointer,
  encodeKey,
  encodePointer,
  encodeQemuKey,
  encodeSetDesktopSize,
  encodeSetEncodings,
  encodeSetPixelFormat,
  encodeUpdateRequest,
} from '../codec/client-encoder.ts'
import type { Area, ClientMessage } from '../codec/client-messages.ts'
import { isProvided } from '../codec/clipboard.ts'
import { ENCODING, isPassed } from '../codec/encodings.ts'
import { PendingBytes } from '../codec/pending-bytes.ts'
import type { PixelFormat } from '../codec/pixel-format.ts'
import type { InputMessage } from '../guests/guest.ts'
import { isStateless } from '../guests/tap.ts'
import type { ClipboardGuard } from './clipboard.ts'
import type { Downstream } from './downstream.ts'
import { FENCE } from './fences.ts'
import { LEAST_WISH, QUIET_MS } from './limits.ts'
import type { PictureWatch } from './picture-watch.ts'
import type { VncRecorder } from './recorder.ts'

export interface UpstreamOptions {
  /** Views, valid during the call. */
  send: (bytes: Uint8Array) => void
  downstream: Downstream
  recorder: VncRecorder
  clipboard: ClipboardGuard
  isViewOnly: boolean
  /** The pointer was moved, by the session's user (0) or a guest. */
  onPointer: (participant: number, x: number, y: number, buttons: number) => void
  /** The target was asked for all of its picture. */
  onAsked: () => void
  watch: PictureWatch
  /** The user has done something. */
  onSign: () => void
}

/** A target that changes its size says so, whether the viewer can follow it or not. */
const OWN_ENCODINGS = [ENCODING.FENCE, ENCODING.DESKTOP_SIZE]

/** Left, middle, right and the wheel's four. */
const GUEST_BUTTONS = 0x7f

export class Upstream {
  readonly #options: UpstreamOptions
  /** The viewer has nothing of the target's picture: its next request is for all of it. */
  #needsAll = true
  #encodings: readonly number[] = []
  /** The viewer has asked for it, while the target could have begun to draw in the one before. */
  #nextFormat: { format: PixelFormat; timer: NodeJS.Timeout } | undefined
  /** The viewer has asked for continuous updates. */
  #isContinuous = false
  /** Others see what the target sends as well, and have not seen what came before. */
  #isShared = false
  /** The viewer has asked for pointer events with more buttons at any time. */
  #hasAskedForButtons = false
  /** For the target, until all is taken that the viewer has sent in one piece. */
  readonly #gathered = new PendingBytes()

  constructor(options: UpstreamOptions) {
    this.#options = options
  }

  /** Sends what `take` has gathered: a flood of small messages is one write, and one frame of what encrypts it. */
  flush(): void {
    if (this.#gathered.length === 0) return
    this.#options.send(this.#gathered.bytes)
    this.#gathered.clear()
  }

  #gather(bytes: Uint8Array): void {
    this.#gathered.append(bytes, 0, bytes.length)
  }

  /** At once, and behind what was gathered. */
  #send(bytes: Uint8Array): void {
    this.#gather(bytes)
    this.flush()
  }

  /** The viewer shows a title that changes. */
  get takesName(): boolean {
    return this.#encodings.includes(ENCODING.DESKTOP_NAME)
  }

  /** What the viewer has asked for last, as it was passed on. */
  get encodings(): readonly number[] {
    return this.#encodings
  }

  /** What the viewer takes its pixels for. */
  get viewerFormat(): PixelFormat {
    return this.#nextFormat?.format ?? this.#options.downstream.format
  }

  /** What the viewer asks for, as far as it is passed on. */
  setEncodings(encodings: readonly number[]): void {
    const { clipboard, downstream } = this.#options
    const passed = encodings.filter(
      (encoding) => isPassed(encoding) && (encoding !== ENCODING.EXTENDED_CLIPBOARD || clipboard.isOpen),
    )
    this.#encodings = passed
    downstream.viewerKnowsFences ||= passed.includes(ENCODING.FENCE)
    // Fences are the bastion's own as well: where pixels change their format, the target says by one.
    downstream.ask([...passed, ...OWN_ENCODINGS])
    downstream.viewerKnowsSizes = passed.includes(ENCODING.DESKTOP_SIZE)
    this.#sendEncodings()
  }

  /** For the downstream, which tells by it where a format changes, and answers the target's. */
  sendFence(flags: number, payload: Uint8Array): void {
    this.#send(encodeClientFence(flags, payload))
  }

  /** From now on the target sends what needs nothing of what came before, or what the viewer likes best again. */
  share(isShared: boolean): void {
    this.#isShared = isShared
    // A viewer that has asked for nothing gets Raw.
    if (this.#encodings.length > 0) this.#sendEncodings()
    this.flush()
  }

  #sendEncodings(): void {
    const asked = this.#isShared ? this.#encodings.filter(isStateless) : this.#encodings
    this.#hasAskedForButtons ||= asked.includes(ENCODING.EXTENDED_MOUSE_BUTTONS)
    // Servers read pointer events by the last SetEncodings: what the target has confirmed stays as it is.
    const more = this.#options.downstream.knows('extended-buttons') ? [ENCODING.EXTENDED_MOUSE_BUTTONS] : []
    this.#gather(encodeSetEncodings([...new Set([...asked, ...OWN_ENCODINGS, ...more])]))
  }

  /** Asks for all of the picture, on the viewer's behalf. */
  requestAll(): void {
    this.#needsAll = false
    this.#request(false)
    this.#options.onAsked()
  }

  /** Asks for what has changed anywhere, whether the viewer has or not. */
  askAgain(): void {
    if (this.#nextFormat) return
    if (this.#needsAll) this.requestAll()
    else this.#request(true)
    this.flush()
  }

  /** The desktop has another size: what was asked for is not all of it any more. */
  resized(): void {
    this.#needsAll = true
    if (this.#isContinuous) this.#gather(encodeContinuousUpdates(true, this.#all))
  }

  get #all(): Area {
    const { width, height } = this.#options.downstream
    return { x: 0, y: 0, width, height }
  }

  #request(isIncremental: boolean): void {
    this.#gather(encodeUpdateRequest(isIncremental, this.#all))
    this.#options.watch.asked()
  }

  /** The viewer's: of its own area it gets all if it wants, and what changes elsewhere is recorded with it. */
  #requested(isIncremental: boolean, area: Area): void {
    // With the other format all of it is asked for.
    if (this.#nextFormat) return
    if (this.#needsAll) {
      this.requestAll()
      return
    }
    const { width, height } = this.#options.downstream
    const right = Math.min(area.x + area.width, width)
    const bottom = Math.min(area.y + area.height, height)
    const part = { x: area.x, y: area.y, width: right - area.x, height: bottom - area.y }
    const isAll = part.width === width && part.height === height
    if (!isIncremental && !isAll && part.width > 0 && part.height > 0)
      this.#gather(encodeUpdateRequest(false, part))
    this.#request(isIncremental || !isAll)
  }

  /**
   * The target draws in it from here on. One that cannot say where is asked nothing more until it has drawn what it was
   * asked for, or has had nothing to draw for a while, and then for everything.
   */
  #setPixelFormat(format: PixelFormat): void {
    const { downstream, watch } = this.#options
    if (this.#nextFormat || (!downstream.tellsFormats && watch.isAwaited)) {
      const timer = this.#nextFormat?.timer ?? setTimeout(() => this.#changeFormat(), QUIET_MS)
      this.#nextFormat = { format, timer }
      return
    }
    if (!downstream.tellsFormats) this.#needsAll = true
    downstream.setPixelFormat(format)
    this.#gather(encodeSetPixelFormat(format))
  }

  #changeFormat(): void {
    const { downstream } = this.#options
    // It has begun to draw: its end is waited for.
    if (!this.#nextFormat || downstream.isInUpdate) return
    const { format, timer } = this.#nextFormat
    clearTimeout(timer)
    this.#nextFormat = undefined
    downstream.setPixelFormat(format)
    this.#gather(encodeSetPixelFormat(format))
    this.requestAll()
    this.flush()
  }

  /** The target has drawn what it was asked for. */
  updateEnded(): void {
    if (!this.#options.watch.isAwaited) this.#changeFormat()
  }

  /** The session is over. */
  stop(): void {
    clearTimeout(this.#nextFormat?.timer)
  }

  #continuous(isEnabled: boolean): void {
    const { downstream, watch } = this.#options
    // A target that has not said that it knows this message need not do what it says.
    if (!downstream.knows('continuous-updates')) return
    downstream.continuousUpdates(isEnabled)
    this.#isContinuous = isEnabled
    watch.continuous(isEnabled)
    this.#gather(encodeContinuousUpdates(isEnabled, this.#all))
  }

  /** Of a guest who works on the desktop. */
  input(participant: number, message: InputMessage): void {
    const { recorder, isViewOnly, onSign, onPointer, watch } = this.#options
    if (isViewOnly) return
    onSign()
    watch.acts()
    if (message.kind === 'key') {
      const { isDown, keysym } = message
      this.#send(encodeKey(isDown, keysym))
      recorder.key(isDown, keysym, undefined, participant)
      return
    }
    const { x, y, buttons } = message
    // Seven buttons: with the eighth bit a target may take the next message's first byte for more of them.
    const pressed = buttons & GUEST_BUTTONS
    this.#send(encodePointer(x, y, pressed))
    recorder.pointer(x, y, pressed, participant)
    onPointer(participant, x, y, pressed)
  }

  /**
   * A message of the viewer; `flush` sends what comes of it. It is built anew, so that the target reads what was read here,
   * whatever it makes of the bits that mean nothing. Throws MalformedError.
   */
  take(message: ClientMessage): void {
    const { downstream, recorder, clipboard, isViewOnly, onSign, onPointer, watch } = this.#options
    switch (message.kind) {
      case 'set-pixel-format':
        this.#setPixelFormat(message.format)
        return
      case 'set-encodings':
        this.setEncodings(message.encodings)
        return
      case 'update-request':
        this.#requested(message.isIncremental, message)
        return
      case 'continuous-updates':
        this.#continuous(message.isEnabled)
        return
      case 'fence': {
        const { flags, payload } = message
        if (flags & FENCE.REQUEST || downstream.fences.answers(payload))
          this.#gather(encodeClientFence(flags, payload))
        return
      }
      case 'key':
        onSign()
        if (isViewOnly) return
        watch.acts()
        this.#key(message.isDown, message.keysym, message.keycode)
        return
      case 'pointer': {
        onSign()
        if (isViewOnly) return
        watch.acts()
        const { x, y, buttons } = message
        this.#gather(this.#pointer(x, y, buttons))
        recorder.pointer(x, y, buttons)
        onPointer(0, x, y, buttons)
        return
      }
      case 'cut-text':
        if (!clipboard.passesText('up', message.text)) return
        watch.acts()
        this.#gather(encodeClientCutText(message.text))
        return
      case 'extended-cut-text': {
        const passed = clipboard.extended('up', message.flags, message.body)
        if (!passed) return
        if (isProvided(passed.flags)) watch.acts()
        this.#gather(encodeExtendedClientCutText(passed.flags, passed.body))
        return
      }
      case 'set-desktop-size': {
        const { width, height, screens } = message
        const isSeen = LEAST_WISH.width <= width && LEAST_WISH.height <= height
        // A target that has not said that it knows this message breaks off at it.
        if (!isViewOnly && isSeen && downstream.knows('desktop-size')) {
          watch.acts()
          this.#gather(encodeSetDesktopSize(width, height, screens))
        } else if (this.#encodings.includes(ENCODING.EXTENDED_DESKTOP_SIZE)) downstream.refuseSize()
      }
    }
  }

  #key(isDown: boolean, keysym: number, keycode: number | undefined): void {
    this.#gather(
      keycode !== undefined && this.#options.downstream.knows('key-codes')
        ? encodeQemuKey(isDown, keysym, keycode)
        : encodeKey(isDown, keysym),
    )
    this.#options.recorder.key(isDown, keysym, keycode)
  }

  /** Bit 7 is a button, or says that another byte follows: never both. */
  #pointer(x: number, y: number, buttons: number): Uint8Array {
    if (this.#options.downstream.knows('extended-buttons'))
      return buttons < 0x80 ? encodePointer(x, y, buttons) : encodeExtendedPointer(x, y, buttons)
    return encodePointer(x, y, buttons & (this.#hasAskedForButtons ? 0x7f : 0xff))
  }
}
