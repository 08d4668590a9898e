/** Forwards the viewer's messages to the target, within the session's rights. */

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
import { Pressed } from './pressed.ts'
import type { VncRecorder } from './recorder.ts'

export interface UpstreamOptions {
  /** Sends views, valid during the call. */
  send: (bytes: Uint8Array) => void
  downstream: Downstream
  recorder: VncRecorder
  clipboard: ClipboardGuard
  /** Whether the viewer's and the guests' input is dropped. It may change. */
  readonly isViewOnly: boolean
  /** Whether nothing of the viewer's reaches the target: neither input nor clipboard. */
  readonly isSuspended: boolean
  /** Called when the session's user (0) or a guest has moved the pointer. */
  onPointer: (participant: number, x: number, y: number, buttons: number) => void
  /** Called when the target was asked for its whole picture. */
  onAsked: () => void
  watch: PictureWatch
  /** Called for each action of the user. */
  onSign: () => void
}

/** Requested for the bastion: the target reports a new size, whether or not the viewer can follow. */
const OWN_ENCODINGS = [ENCODING.FENCE, ENCODING.DESKTOP_SIZE]

/** Left, middle, right and the wheel's four. */
const GUEST_BUTTONS = 0x7f

export class Upstream {
  readonly #options: UpstreamOptions
  /** Set while the viewer has nothing of the target's picture: its next request is for everything. */
  #needsAll = true
  #encodings: readonly number[] = []
  /** A format that the viewer has requested while the target might still draw in the old one. */
  #nextFormat: { format: PixelFormat; timer: NodeJS.Timeout } | undefined
  /** Set while the viewer requests continuous updates. */
  #isContinuous = false
  /** Set while guests see the target's updates too: they have not seen earlier ones. */
  #isShared = false
  /** Set once the viewer has requested pointer events with more buttons. */
  #hasAskedForButtons = false
  /** Messages for the target, gathered until a chunk from the viewer has been handled. */
  readonly #gathered = new PendingBytes()
  readonly #pressed = new Pressed()

  constructor(options: UpstreamOptions) {
    this.#options = options
  }

  /**
   * Sends the messages that `take` has gathered: a flood of small ones becomes one write, and one encrypted
   * frame.
   */
  flush(): void {
    if (this.#gathered.length === 0) return
    this.#options.send(this.#gathered.bytes)
    this.#gathered.clear()
  }

  #gather(bytes: Uint8Array): void {
    this.#gathered.append(bytes, 0, bytes.length)
  }

  /** Sends at once, after the gathered messages. */
  #send(bytes: Uint8Array): void {
    this.#gather(bytes)
    this.flush()
  }

  /** True if the viewer shows a changing title. */
  get takesName(): boolean {
    return this.#encodings.includes(ENCODING.DESKTOP_NAME)
  }

  /** The viewer's last encodings, as forwarded. */
  get encodings(): readonly number[] {
    return this.#encodings
  }

  /** The viewer's pixel format. */
  get viewerFormat(): PixelFormat {
    return this.#nextFormat?.format ?? this.#options.downstream.format
  }

  /** Forwards the viewer's encodings, as far as allowed. */
  setEncodings(encodings: readonly number[]): void {
    const { clipboard, downstream } = this.#options
    const passed = encodings.filter(
      (encoding) => isPassed(encoding) && (encoding !== ENCODING.EXTENDED_CLIPBOARD || clipboard.isOpen),
    )
    this.#encodings = passed
    downstream.viewerKnowsFences ||= passed.includes(ENCODING.FENCE)
    // The bastion needs fences itself: they mark where the target changes its pixel format.
    downstream.ask([...passed, ...OWN_ENCODINGS])
    downstream.viewerKnowsSizes = passed.includes(ENCODING.DESKTOP_SIZE)
    this.#sendEncodings()
  }

  /** Used by the downstream to mark a change of format, and to answer the target's fences. */
  sendFence(flags: number, payload: Uint8Array): void {
    this.#send(encodeClientFence(flags, payload))
  }

  /** Switches between stateless encodings, for guests, and the viewer's preferred ones. */
  share(isShared: boolean): void {
    this.#isShared = isShared
    // A viewer without SetEncodings gets Raw.
    if (this.#encodings.length > 0) this.#sendEncodings()
    this.flush()
  }

  #sendEncodings(): void {
    const asked = this.#isShared ? this.#encodings.filter(isStateless) : this.#encodings
    this.#hasAskedForButtons ||= asked.includes(ENCODING.EXTENDED_MOUSE_BUTTONS)
    // Servers read pointer events by the last SetEncodings, so a confirmed extension stays in the list.
    const more = this.#options.downstream.knows('extended-buttons') ? [ENCODING.EXTENDED_MOUSE_BUTTONS] : []
    this.#gather(encodeSetEncodings([...new Set([...asked, ...OWN_ENCODINGS, ...more])]))
  }

  /** Requests the whole picture for the viewer. */
  requestAll(): void {
    this.#needsAll = false
    this.#request(false)
    this.#options.onAsked()
  }

  /** Requests all changes, whether or not the viewer has. */
  askAgain(): void {
    if (this.#nextFormat) return
    if (this.#needsAll) this.requestAll()
    else this.#request(true)
    this.flush()
  }

  /** Called when the desktop has another size: earlier requests no longer cover it. */
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

  /**
   * Handles the viewer's request: it may get its own area in full, and changes elsewhere are recorded with
   * it.
   */
  #requested(isIncremental: boolean, area: Area): void {
    // The change of format will request everything.
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
   * Changes the target's pixel format. If the target cannot mark the change, waits until it has drawn the
   * requested update, or has been quiet for a while, and then requests everything.
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
    // An update has begun: its end triggers the change.
    if (!this.#nextFormat || downstream.isInUpdate) return
    const { format, timer } = this.#nextFormat
    clearTimeout(timer)
    this.#nextFormat = undefined
    downstream.setPixelFormat(format)
    this.#gather(encodeSetPixelFormat(format))
    this.requestAll()
    this.flush()
  }

  /** Called when the target has drawn the requested update. */
  updateEnded(): void {
    if (!this.#options.watch.isAwaited) this.#changeFormat()
  }

  /** Called at the end of the session. */
  stop(): void {
    clearTimeout(this.#nextFormat?.timer)
  }

  #continuous(isEnabled: boolean): void {
    const { downstream, watch } = this.#options
    // A target that has not confirmed this message may ignore it.
    if (!downstream.knows('continuous-updates')) return
    downstream.continuousUpdates(isEnabled)
    this.#isContinuous = isEnabled
    watch.continuous(isEnabled)
    this.#gather(encodeContinuousUpdates(isEnabled, this.#all))
  }

  /** Releases the keys and buttons that the viewer holds. Called before its input is suspended. */
  release(): void {
    for (const message of this.#pressed.release()) this.take(message)
    this.flush()
  }

  /** Forwards the input of a guest in control. */
  input(participant: number, message: InputMessage): void {
    const { recorder, isViewOnly, isSuspended, onSign, onPointer, watch } = this.#options
    if (isViewOnly || isSuspended) return
    onSign()
    watch.acts()
    if (message.kind === 'key') {
      const { isDown, keysym } = message
      this.#send(encodeKey(isDown, keysym))
      recorder.key(isDown, keysym, undefined, participant)
      return
    }
    const { x, y, buttons } = message
    // Seven buttons: with the eighth bit a target may read the next message's first byte as further buttons.
    const pressed = buttons & GUEST_BUTTONS
    this.#send(encodePointer(x, y, pressed))
    recorder.pointer(x, y, pressed, participant)
    onPointer(participant, x, y, pressed)
  }

  /**
   * Handles a message of the viewer; `flush` sends the result. Messages are rebuilt, so that the target reads
   * the same content as the bastion, whatever it makes of unused bits. Throws MalformedError.
   */
  take(message: ClientMessage): void {
    const { downstream, recorder, clipboard, isSuspended, onSign, onPointer, watch } = this.#options
    const isViewOnly = this.#options.isViewOnly || isSuspended
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
        this.#pressed.note(message)
        this.#key(message.isDown, message.keysym, message.keycode)
        return
      case 'pointer': {
        onSign()
        if (isViewOnly) return
        watch.acts()
        const { x, y, buttons } = message
        this.#pressed.note(message)
        this.#gather(this.#pointer(x, y, buttons))
        recorder.pointer(x, y, buttons)
        onPointer(0, x, y, buttons)
        return
      }
      case 'cut-text':
        if (isSuspended || !clipboard.passesText('up', message.text)) return
        watch.acts()
        this.#gather(encodeClientCutText(message.text))
        return
      case 'extended-cut-text': {
        if (isSuspended) return
        const passed = clipboard.extended('up', message.flags, message.body)
        if (!passed) return
        if (isProvided(passed.flags)) watch.acts()
        this.#gather(encodeExtendedClientCutText(passed.flags, passed.body))
        return
      }
      case 'set-desktop-size': {
        const { width, height, screens } = message
        const isSeen = LEAST_WISH.width <= width && LEAST_WISH.height <= height
        // A target that has not confirmed this message disconnects on it.
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

  /** Bit 7 is either a button or the mark of another byte, never both. */
  #pointer(x: number, y: number, buttons: number): Uint8Array {
    if (this.#options.downstream.knows('extended-buttons'))
      return buttons < 0x80 ? encodePointer(x, y, buttons) : encodeExtendedPointer(x, y, buttons)
    return encodePointer(x, y, buttons & (this.#hasAskedForButtons ? 0x7f : 0xff))
  }
}
