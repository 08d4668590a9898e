/** What of any desktop goes into its recording: how large it is, what its user does, and when it ends. */
import { Buffer } from 'node:buffer'
import { type Clipboard, FRAME, type FrameSink, type FrameType } from '../../recordings/container/frames.ts'
import { encodeDesktopSize, encodeKey, encodePointer } from '../../recordings/decode/graphics/events.ts'
import type { Quota } from '../session/quota.ts'
import type { Copied, Direction } from './clipboard-account.ts'
import { CLIPBOARD_KEPT } from './limits.ts'

/** A session's one channel. */
const CHANNEL = 1
/** The session's user among those who take part. */
const OWNER = 0

export interface DesktopRecorderOptions {
  sink: FrameSink
  quota: Quota
  /** Which keys were pressed is left out. */
  masksKeys: boolean
}

export class DesktopRecorder {
  readonly #options: DesktopRecorderOptions

  constructor(options: DesktopRecorderOptions) {
    this.#options = options
  }

  /** Pieces of what changes the picture, in order. */
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

  /** `keysym` as in X11, 0 where only `code` is known. */
  key(isDown: boolean, keysym: number, code: number | undefined, participant: number = OWNER): void {
    const pressed = this.#options.masksKeys ? {} : { keysym, ...(code !== undefined && { code }) }
    this.write(FRAME.key, encodeKey({ participant, isDown, ...pressed }))
  }

  /** Of a text its beginning is kept. */
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
