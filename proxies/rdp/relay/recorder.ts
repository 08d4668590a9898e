/** Writes an RDP desktop to the recording: the updates of its picture, and the user's input. */
import { Buffer } from 'node:buffer'
import { type ChannelOpen, type FileOperation, FRAME } from '../../../recordings/container/frames.ts'
import { MESSAGE_HEAD, writeUpdateHead } from '../../../recordings/decode/graphics/rdp/message.ts'
import { DesktopRecorder } from '../../desktop/recorder.ts'
import type { Desktop } from '../codec/capabilities.ts'
import { type InputEvent, POINTER_FLAG, wheelOf } from '../codec/input.ts'
import type { Update } from '../codec/updates.ts'

/** Bytes gathered, about as many as one read delivers. */
const GATHERED = 64 * 1024
/** Updates gathered for one frame. Shared by all sessions: each empties it before the next read. */
const gathered = Buffer.allocUnsafeSlow(GATHERED)

/** Bits of a `pointer` frame's buttons (RFC 6143 7.5.5, and the community specification for the last two). */
const BUTTON = {
  left: 0x1,
  middle: 0x2,
  right: 0x4,
  wheelUp: 0x8,
  wheelDown: 0x10,
  wheelLeft: 0x20,
  wheelRight: 0x40,
  back: 0x80,
  forward: 0x100,
} as const
const EXTENDED_BUTTON = { down: 0x8000, back: 0x1, forward: 0x2 } as const

/** Added to keys after E0, and to the one after E1 (Pause). */
const EXTENDED_KEY = [0, 0x80, 0xe100] as const
/** Base of X11's keysyms for characters outside Latin-1. */
const UNICODE_KEYSYM = 0x01000000

export class RdpRecorder extends DesktopRecorder {
  #isOpen = false
  #length = 0
  #x = 0
  #y = 0
  #buttons = 0
  #size = { width: 1, height: 1 }

  /** Opens the channel with the first desktop; later ones record the new size. */
  desktop({ width, height }: Desktop): void {
    this.flush()
    this.#size = { width, height }
    if (this.#isOpen) {
      this.desktopSize(width, height)
      return
    }
    this.#isOpen = true
    const open: ChannelOpen = { kind: 'rdp', subprotocol: 'RDP', desktop: { width, height } }
    this.json(FRAME.channelOpen, open)
  }

  /** Gathers updates received in one chunk; the caller calls `flush` before the next read. */
  update({ code, data }: Update): void {
    const length = MESSAGE_HEAD + data.length
    if (GATHERED < this.#length + length) this.flush()
    this.#length = writeUpdateHead(gathered, this.#length, code, data.length)
    if (length <= GATHERED) {
      gathered.set(data, this.#length)
      this.#length += data.length
      return
    }
    this.flush()
    this.graphics(data)
  }

  flush(): void {
    if (this.#length === 0) return
    const bytes = gathered.subarray(0, this.#length)
    this.#length = 0
    this.graphics(bytes)
  }

  input(events: readonly InputEvent[]): void {
    for (const event of events) this.#event(event)
  }

  file(operation: FileOperation): void {
    this.json(FRAME.file, operation)
  }

  override close(): void {
    this.flush()
    if (this.#isOpen) super.close()
  }

  #event(event: InputEvent): void {
    switch (event.kind) {
      case 'key':
        this.key(event.isDown, 0, event.code | EXTENDED_KEY[event.extended])
        return
      case 'character':
        this.key(event.isDown, event.code < 0x100 ? event.code : UNICODE_KEYSYM | event.code, undefined)
        return
      case 'pointer':
        this.#moved(event.x, event.y, event.flags)
        return
      case 'pointer-extended':
        this.#press(event.flags & EXTENDED_BUTTON.back ? BUTTON.back : 0, event.flags)
        this.#press(event.flags & EXTENDED_BUTTON.forward ? BUTTON.forward : 0, event.flags)
        this.#place(event.x, event.y)
        return
      case 'pointer-relative':
        this.#moved(
          within(this.#x + event.x, this.#size.width),
          within(this.#y + event.y, this.#size.height),
          event.flags,
        )
    }
  }

  #moved(x: number, y: number, flags: number): void {
    if (flags & (POINTER_FLAG.wheel | POINTER_FLAG.horizontalWheel)) {
      this.#turned(flags)
      return
    }
    this.#press(flags & POINTER_FLAG.left ? BUTTON.left : 0, flags)
    this.#press(flags & POINTER_FLAG.right ? BUTTON.right : 0, flags)
    this.#press(flags & POINTER_FLAG.middle ? BUTTON.middle : 0, flags)
    this.#place(x, y)
  }

  /** `down` is the same bit for all buttons. */
  #press(button: number, flags: number): void {
    if (flags & POINTER_FLAG.down) this.#buttons |= button
    else this.#buttons &= ~button
  }

  #place(x: number, y: number): void {
    this.#x = x
    this.#y = y
    this.pointer(x, y, this.#buttons)
  }

  /** Records a notch of the wheel as a button press and release at the pointer's position. */
  #turned(flags: number): void {
    const isAway = wheelOf(flags) > 0
    const button =
      flags & POINTER_FLAG.wheel
        ? isAway
          ? BUTTON.wheelUp
          : BUTTON.wheelDown
        : isAway
          ? BUTTON.wheelRight
          : BUTTON.wheelLeft
    this.pointer(this.#x, this.#y, this.#buttons | button)
    this.pointer(this.#x, this.#y, this.#buttons)
  }
}

/** Clamps a coordinate to the desktop. */
const within = (at: number, side: number) => Math.max(0, Math.min(at, side - 1))
