/** The viewer's way to the target: message by message, held to what the session may do. */
import type { ClipboardGuard } from './clipboard.ts'
import { encodeSetEncodings, encodeUpdateRequest } from './codec/client-encoder.ts'
import type { ClientMessage } from './codec/client-messages.ts'
import { ENCODING, isPassed } from './codec/encodings.ts'
import type { Downstream } from './downstream.ts'
import type { VncRecorder } from './recorder.ts'

export interface UpstreamOptions {
  /** Views, valid during the call. */
  send: (bytes: Uint8Array) => void
  downstream: Downstream
  recorder: VncRecorder
  clipboard: ClipboardGuard
  isViewOnly: boolean
  /** The target was asked for all of its picture. */
  onAsked: () => void
  /** The user has done something. */
  onSign: () => void
}

export class Upstream {
  readonly #options: UpstreamOptions
  /** The viewer has nothing of the target's picture: its next request is for all of it. */
  #needsAll = true
  #encodings: readonly number[] = []

  constructor(options: UpstreamOptions) {
    this.#options = options
  }

  /** The viewer shows a title that changes. */
  get takesName(): boolean {
    return this.#encodings.includes(ENCODING.DESKTOP_NAME)
  }

  /** What the viewer has asked for last, as it was passed on. */
  get encodings(): readonly number[] {
    return this.#encodings
  }

  /** What the viewer asks for, as far as it is passed on. */
  setEncodings(encodings: readonly number[]): void {
    const { clipboard, downstream, send } = this.#options
    const passed = encodings.filter(
      (encoding) => isPassed(encoding) && (encoding !== ENCODING.EXTENDED_CLIPBOARD || clipboard.isOpen),
    )
    this.#encodings = passed
    downstream.ask(passed)
    send(encodeSetEncodings(passed))
  }

  /** Asks for all of the picture, on the viewer's behalf. */
  requestAll(): void {
    this.#needsAll = false
    const { width, height } = this.#options.downstream
    this.#options.send(encodeUpdateRequest(false, { x: 0, y: 0, width, height }))
    this.#options.onAsked()
  }

  /** A message of the viewer, and its bytes, which are valid during the call. Throws MalformedError. */
  take(message: ClientMessage, bytes: Uint8Array): void {
    const { send, downstream, recorder, clipboard, isViewOnly, onSign } = this.#options
    switch (message.kind) {
      case 'set-pixel-format':
        downstream.setPixelFormat(message.format)
        send(bytes)
        return
      case 'set-encodings':
        this.setEncodings(message.encodings)
        return
      case 'update-request':
        if (this.#needsAll) this.requestAll()
        else send(bytes)
        return
      case 'continuous-updates':
        downstream.continuousUpdates(message.isEnabled)
        send(bytes)
        return
      case 'fence':
        send(bytes)
        return
      case 'key':
        onSign()
        if (isViewOnly) return
        send(bytes)
        recorder.key(message.isDown, message.keysym, message.keycode)
        return
      case 'pointer':
        onSign()
        if (isViewOnly) return
        send(bytes)
        recorder.pointer(message.x, message.y, message.buttons)
        return
      case 'cut-text':
        if (clipboard.passesText('up', message.text)) send(bytes)
        return
      case 'extended-cut-text':
        if (clipboard.passesExtended('up', message.flags, message.body)) send(bytes)
        return
      case 'set-desktop-size':
        if (!isViewOnly) send(bytes)
        else if (this.#encodings.includes(ENCODING.EXTENDED_DESKTOP_SIZE)) downstream.refuseSize()
    }
  }
}
