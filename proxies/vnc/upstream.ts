/** The viewer's way to the target: message by message, held to what the session may do. */
import type { ClipboardGuard } from './clipboard.ts'
import { encodeKey, encodePointer, encodeSetEncodings, encodeUpdateRequest } from './codec/client-encoder.ts'
import type { ClientMessage } from './codec/client-messages.ts'
import { ENCODING, isPassed } from './codec/encodings.ts'
import type { Downstream } from './downstream.ts'
import type { InputMessage } from './guests/guest.ts'
import { isStateless } from './guests/tap.ts'
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
  /** The user has done something. */
  onSign: () => void
}

/** Left, middle, right and the wheel's four. */
const GUEST_BUTTONS = 0x7f

export class Upstream {
  readonly #options: UpstreamOptions
  /** The viewer has nothing of the target's picture: its next request is for all of it. */
  #needsAll = true
  #encodings: readonly number[] = []
  /** Others see what the target sends as well, and have not seen what came before. */
  #isShared = false

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
    const { clipboard, downstream } = this.#options
    const passed = encodings.filter(
      (encoding) => isPassed(encoding) && (encoding !== ENCODING.EXTENDED_CLIPBOARD || clipboard.isOpen),
    )
    this.#encodings = passed
    downstream.ask(passed)
    this.#sendEncodings()
  }

  /** From now on the target sends what needs nothing of what came before, or what the viewer likes best again. */
  share(isShared: boolean): void {
    this.#isShared = isShared
    // A viewer that has asked for nothing gets Raw.
    if (this.#encodings.length > 0) this.#sendEncodings()
  }

  #sendEncodings(): void {
    const asked = this.#isShared ? this.#encodings.filter(isStateless) : this.#encodings
    this.#options.send(encodeSetEncodings(asked))
  }

  /** Asks for all of the picture, on the viewer's behalf. */
  requestAll(): void {
    this.#needsAll = false
    const { width, height } = this.#options.downstream
    this.#options.send(encodeUpdateRequest(false, { x: 0, y: 0, width, height }))
    this.#options.onAsked()
  }

  /** Of a guest who works on the desktop. */
  input(participant: number, message: InputMessage): void {
    const { send, recorder, isViewOnly, onSign, onPointer } = this.#options
    if (isViewOnly) return
    onSign()
    if (message.kind === 'key') {
      const { isDown, keysym } = message
      send(encodeKey(isDown, keysym))
      recorder.key(isDown, keysym, undefined, participant)
      return
    }
    const { x, y, buttons } = message
    // Seven buttons: with the eighth bit a target may take the next message's first byte for more of them.
    const pressed = buttons & GUEST_BUTTONS
    send(encodePointer(x, y, pressed))
    recorder.pointer(x, y, pressed, participant)
    onPointer(participant, x, y, pressed)
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
        this.#options.onPointer(0, message.x, message.y, message.buttons)
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
