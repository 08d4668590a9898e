/** Records any desktop: its size, its user's actions, and its end. */
import { Buffer } from 'node:buffer'
import { type Clipboard, FRAME, type FrameSink, type FrameType } from '../../recordings/container/frames.ts'
import { encodeDesktopSize, encodeKey, encodePointer } from '../../recordings/decode/graphics/events.ts'
import type { Quota } from '../session/quota.ts'
import type { Copied, Direction } from './clipboard-account.ts'
import { CLIPBOARD_KEPT } from './limits.ts'

/** The only channel of a session. */
const CHANNEL = 1
/** The session's user, among the participants. */
const OWNER = 0

export interface DesktopRecorderOptions {
  sink: FrameSink
  quota: Quota
  /** Omits which keys were pressed. */
  masksKeys: boolean
}

export class DesktopRecorder {
  readonly #options: DesktopRecorderOptions

  constructor(options: DesktopRecorderOptions) {
    this.#options = options
  }

  /** Records pieces of graphics data, in order. */
  graphics(bytes: Uint8Array): void {
    const { quota } = this.#options
    const granted = quota.take(bytes.length)
    this.write(FRAME.graphics, bytes)
    if (granted < bytes.length) quota.end?.()
  }

  desktopSize(width: number, height: number): void {
    this.write(FRAME.desktopSize, encodeDesktopSize({ width, height }))
  }

  pointer(x: number, y: number, buttons: number, participant: number = OWNER): void {
    this.write(FRAME.pointer, encodePointer({ participant, buttons, x, y }))
  }

  /** `keysym` as in X11, 0 if only `code` is known. */
  key(isDown: boolean, keysym: number, code: number | undefined, participant: number = OWNER): void {
    const pressed = this.#options.masksKeys ? {} : { keysym, ...(code !== undefined && { code }) }
    this.write(FRAME.key, encodeKey({ participant, isDown, ...pressed }))
  }

  /** Keeps only the beginning of a text. */
  clipboard(direction: Direction, { format, size, sha256, text }: Copied): void {
    this.json(FRAME.clipboard, {
      direction,
      format,
      bytes: size,
      ...(sha256 !== undefined && { sha256 }),
      ...(text !== undefined && { text: text.slice(0, CLIPBOARD_KEPT) }),
    } satisfies Clipboard)
  }

  close(): void {
    this.write(FRAME.channelClose, new Uint8Array(0))
  }

  protected json(type: FrameType, value: object): void {
    this.write(type, Buffer.from(JSON.stringify(value)))
  }

  protected write(type: FrameType, payload: Uint8Array): void {
    this.#options.sink.write(type, CHANNEL, payload)
  }
}
