/** What of a desktop goes into the recording: the target's own bytes, and what its user does. */
import {
  type ChannelOpen,
  type Clipboard,
  FRAME,
  type FrameSink,
  type FrameType,
  type Participant,
} from '../../recordings/frames.ts'
import { encodeDesktopSize, encodeKey, encodePointer } from '../../recordings/graphics/events.ts'
import type { Quota } from '../quota.ts'
import { encodePixelFormat, type PixelFormat } from './codec/pixel-format.ts'
import type { ServerInit } from './codec/server-init.ts'
import { CLIPBOARD_KEPT } from './limits.ts'

/** A session's one channel. */
const CHANNEL = 1
/** The session's user among those who take part. */
const OWNER = 0

export interface RecorderOptions {
  sink: FrameSink
  quota: Quota
  /** Which keys were pressed is left out. */
  masksKeys: boolean
}

export class VncRecorder {
  readonly #options: RecorderOptions

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  open({ width, height, name }: ServerInit, format: PixelFormat): void {
    const open: ChannelOpen = { kind: 'vnc', subprotocol: 'VNC', desktop: { width, height, name } }
    this.#json(FRAME.channelOpen, open)
    this.pixelFormat(format)
  }

  /** Pieces of the messages that change what is shown, in order. */
  graphics(bytes: Uint8Array): void {
    const { quota } = this.#options
    const granted = quota.take(bytes.length)
    this.#write(FRAME.graphics, bytes)
    if (granted < bytes.length) quota.end?.()
  }

  /** From the next message of `graphics` on. */
  pixelFormat(format: PixelFormat): void {
    this.#write(FRAME.pixelFormat, encodePixelFormat(format))
  }

  desktopSize(width: number, height: number): void {
    this.#write(FRAME.desktopSize, encodeDesktopSize({ width, height }))
  }

  pointer(x: number, y: number, buttons: number, participant: number = OWNER): void {
    this.#write(FRAME.pointer, encodePointer({ participant, buttons, x, y }))
  }

  /** Of those who take part, who comes, goes, and may do what. */
  participant(entry: Participant): void {
    this.#json(FRAME.participant, entry)
  }

  key(isDown: boolean, keysym: number, code: number | undefined, participant: number = OWNER): void {
    const pressed = this.#options.masksKeys ? {} : { keysym, ...(code !== undefined && { code }) }
    this.#write(FRAME.key, encodeKey({ participant, isDown, ...pressed }))
  }

  /** `text`: of those formats that are any; `bytes`: of everything that was passed on. */
  clipboard(direction: Clipboard['direction'], bytes: number, text: string | undefined): void {
    const kept = text?.slice(0, CLIPBOARD_KEPT)
    this.#json(FRAME.clipboard, {
      direction,
      bytes,
      ...(kept !== undefined && { text: kept }),
    } satisfies Clipboard)
  }

  close(): void {
    this.#write(FRAME.channelClose, new Uint8Array(0))
  }

  #json(type: FrameType, value: object): void {
    this.#write(type, Buffer.from(JSON.stringify(value)))
  }

  #write(type: FrameType, payload: Uint8Array): void {
    this.#options.sink.write(type, CHANNEL, payload)
  }
}
