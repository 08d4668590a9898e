/**
 * Forwards the target's exact bytes to the viewer and records them; drops those that the viewer may not see.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { MalformedError } from '../../bytes/malformed.ts'
import { ENCODING } from '../codec/encodings.ts'
import type { PixelFormat } from '../codec/pixel-format.ts'
import { changesSize, parseDesktopName } from '../codec/pseudo-rectangle.ts'
import {
  encodeBell,
  encodeDesktopName,
  encodeDesktopSize,
  encodeExtendedDesktopSize,
  encodeExtendedServerCutText,
  encodeRectangleHeader,
  encodeUpdateHeader,
} from '../codec/server-encoder.ts'
import type { ServerInit } from '../codec/server-init.ts'
import { type Rectangle, ServerStream, type ServerUnit, type ServerVisitor } from '../codec/server-stream.ts'
import type { GraphicsTap } from '../guests/tap.ts'
import type { ClipboardGuard } from './clipboard.ts'
import { FENCE, Fences } from './fences.ts'
import type { PictureWatch } from './picture-watch.ts'
import type { VncRecorder } from './recorder.ts'
import { Run } from './run.ts'
import { desktopName } from './texts.ts'

/** Extensions that a target supports once it has confirmed them. */
export type Extension =
  | 'extended-clipboard'
  | 'extended-buttons'
  | 'key-codes'
  | 'desktop-size'
  | 'continuous-updates'

const EXTENSIONS: ReadonlyMap<number, Extension> = new Map([
  [ENCODING.EXTENDED_MOUSE_BUTTONS, 'extended-buttons'],
  [ENCODING.QEMU_KEY, 'key-codes'],
  [ENCODING.EXTENDED_DESKTOP_SIZE, 'desktop-size'],
])

export interface DownstreamOptions {
  /** Sends views, valid during the call. */
  send: (bytes: Uint8Array) => void
  recorder: VncRecorder
  clipboard: ClipboardGuard
  isRecorded: boolean
  /** Called when the target has confirmed this extension. */
  onExtension: (extension: Extension) => void
  /** Called when an update is complete. */
  onUpdate: () => void
  watch: PictureWatch
  /**
   * Called when the desktop's size changes. False if the viewer cannot follow: the rectangle is not forwarded
   * then.
   */
  onResized: (isFollowed: boolean) => void
  /** Sends a fence of the bastion's own, or the reply to the target's. */
  sendFence: (flags: number, payload: Uint8Array) => void
}

/** A rectangle without pixels, in place of one that the viewer does not support. */
const NO_PIXELS = encodeRectangleHeader({ x: 0, y: 0, width: 0, height: 0 }, ENCODING.RAW)

const FENCE_BODY = 9
const OWN_FENCE_BYTES = 16
/** Changes of the pixel format that may wait for the target's reply. */
const MAX_FORMATS = 32

/** Where an extended cut text's data begins. */
const EXTENDED_BODY = 12
const CLASSIC_BODY = 8

/** ExtendedDesktopSize: the requester of a size, and the result. */
const BY_SERVER = 0
const BY_VIEWER = 1
const GRANTED = 0
const PROHIBITED = 1

export class Downstream implements ServerVisitor {
  /** Set while there are guests: receives the recorded bytes, too. */
  tap: GraphicsTap | undefined
  readonly #options: DownstreamOptions
  readonly #stream: ServerStream
  readonly #toViewer: Run
  readonly #toRecording: Run
  #unit: ServerUnit = { kind: 'bell' }
  /** The format to record after the end of the current update. */
  #nextFormat: PixelFormat | undefined
  /** The format that holds from the end of continuous updates. */
  #formatAtStop: PixelFormat | undefined
  #isStopping = false
  #format: PixelFormat
  /** The bastion's own messages, which wait for the end of an update: the last of each kind. */
  readonly #own = new Map<string, Buffer>()
  #isInMessage = false
  readonly #known = new Set<Extension>()
  #knowsFences = false
  /** If false, fences are between the target and the bastion alone. */
  viewerKnowsFences = false
  /** Set if the viewer accepts DesktopSize rectangles. */
  viewerKnowsSizes = false
  /** The fences that the viewer has to answer. */
  readonly fences: Fences
  #lastSize: { width: number; height: number }
  /**
   * Formats that hold from the target's reply to a fence on. Its payload is random, so that no other reply
   * matches.
   */
  readonly #awaited: { payload: Buffer; format: PixelFormat }[] = []

  constructor(init: ServerInit, options: DownstreamOptions) {
    this.#options = options
    this.#format = init.format
    this.#lastSize = { width: init.width, height: init.height }
    this.fences = new Fences({ answer: options.sendFence })
    this.#stream = new ServerStream(init, this)
    this.#toViewer = new Run(options.send)
    this.#toRecording = new Run((bytes) => options.recorder.graphics(bytes))
  }

  get width(): number {
    return this.#stream.width
  }

  get height(): number {
    return this.#stream.height
  }

  /** The format last requested from the target. */
  get format(): PixelFormat {
    return this.#format
  }

  /** True from the beginning of an update to its end. */
  get isInUpdate(): boolean {
    return this.#stream.isInUpdate
  }

  /** True from the beginning of a message to its end. */
  get isInMessage(): boolean {
    return this.#isInMessage || this.#stream.isInUpdate
  }

  /** Throws MalformedError. Bytes before the fault have been forwarded and recorded. */
  receive(chunk: Uint8Array): void {
    try {
      this.#stream.feed(chunk)
    } finally {
      this.#toViewer.end()
      this.#toRecording.end()
      this.tap?.flush()
    }
  }

  /** True if the target's messages mark a change of its pixel format. */
  get tellsFormats(): boolean {
    return this.#knowsFences || this.#isStopping
  }

  /** Returns true if the target has confirmed the extension. */
  knows(extension: Extension): boolean {
    return this.#known.has(extension)
  }

  #learned(extension: Extension): void {
    if (this.#known.has(extension)) return
    this.#known.add(extension)
    this.#options.onExtension(extension)
  }

  /** Allows these encodings from the target. */
  ask(encodings: readonly number[]): void {
    this.#stream.ask(encodings)
  }

  /**
   * Called before the viewer's request for another format is sent to the target. If the target supports
   * fences, its reply to one marks the change. Otherwise the caller waits until no update is due except one
   * that has begun, which still has the old format. With continuous updates, viewers are expected to stop
   * those first: the target's confirmation of that marks the change.
   */
  setPixelFormat(format: PixelFormat): void {
    this.#format = format
    if (this.#knowsFences) {
      if (this.#awaited.length === MAX_FORMATS)
        throw new MalformedError(
          `vnc: at most ${MAX_FORMATS} pending changes of the pixel format were expected, found more`,
        )
      const payload = randomBytes(OWN_FENCE_BYTES)
      this.#awaited.push({ payload, format })
      this.#options.sendFence(FENCE.REQUEST | FENCE.BLOCK_BEFORE | FENCE.SYNC_NEXT, payload)
    } else if (this.#isStopping) this.#formatAtStop = format
    else this.#change(format)
  }

  /** Called when the viewer starts or stops continuous updates. */
  continuousUpdates(isEnabled: boolean): void {
    this.#isStopping = !isEnabled
  }

  #change(format: PixelFormat): void {
    this.#stream.setPixelFormat(format)
    if (this.#stream.isInUpdate) this.#nextFormat = format
    else this.#formatFrom(format)
  }

  /** Records the format, which holds from the next update on. */
  #formatFrom(format: PixelFormat): void {
    // An update in the same chunk is recorded first, because it has the old format.
    this.#toRecording.end()
    this.#options.recorder.pixelFormat(format)
    this.tap?.pixelFormat(format)
  }

  begin(unit: ServerUnit): void {
    this.#unit = unit
    if (unit.kind === 'update') this.#options.watch.updateBegins()
    this.tap?.begin(unit)
    this.#isInMessage = true
  }

  bytes(piece: Uint8Array, isEnd: boolean): void {
    if (isEnd) this.#isInMessage = false
    const unit = this.#unit
    switch (unit.kind) {
      case 'update':
      case 'colour-map':
        this.#toRecording.add(piece)
        this.tap?.bytes(piece)
        this.#toViewer.add(piece)
        return
      case 'rectangle':
        this.#toRecording.add(piece)
        this.tap?.bytes(piece)
        if (unit.encoding === ENCODING.DESKTOP_NAME) this.#rename(piece)
        else if (unit.encoding === ENCODING.DESKTOP_SIZE && !this.viewerKnowsSizes) this.#sendNow(NO_PIXELS)
        else this.#toViewer.add(piece)
        if (isEnd) this.#rectangleEnd(unit)
        return
      case 'cut-text':
        if (this.#options.clipboard.passesText('down', piece.subarray(CLASSIC_BODY)))
          this.#toViewer.add(piece)
        return
      case 'extended-cut-text': {
        this.#learned('extended-clipboard')
        const passed = this.#options.clipboard.extended('down', unit.flags, piece.subarray(EXTENDED_BODY))
        if (passed) this.#sendNow(encodeExtendedServerCutText(passed.flags, passed.body))
        return
      }
      case 'end-of-continuous-updates':
        this.#learned('continuous-updates')
        this.#toViewer.add(piece)
        this.#stopped()
        return
      case 'fence':
        this.#fence(unit.flags, piece)
        return
      default:
        this.#toViewer.add(piece)
    }
  }

  #fence(flags: number, piece: Uint8Array): void {
    this.#knowsFences = true
    const payload = piece.subarray(FENCE_BODY)
    const isRequest = (flags & FENCE.REQUEST) !== 0
    const [awaited] = this.#awaited
    if (!isRequest && awaited?.payload.equals(payload)) {
      this.#awaited.shift()
      this.#change(awaited.format)
    } else if (this.viewerKnowsFences) {
      if (isRequest) this.fences.asked(flags, payload)
      this.#toViewer.add(piece)
    } else if (isRequest) {
      // All earlier messages have been handled.
      this.#options.sendFence(flags & (FENCE.BLOCK_BEFORE | FENCE.BLOCK_AFTER), payload)
    }
  }

  updateEnd(): void {
    if (this.#nextFormat) {
      this.#formatFrom(this.#nextFormat)
      this.#nextFormat = undefined
    }
    this.tap?.updateEnd()
    for (const message of this.#own.values()) this.#sendNow(message)
    this.#own.clear()
    this.#options.watch.updateEnds()
    this.#options.onUpdate()
  }

  #rectangleEnd(rectangle: Rectangle): void {
    const { encoding, width, height } = rectangle
    const extension = EXTENSIONS.get(encoding)
    if (extension) this.#learned(extension)
    const isSize =
      encoding === ENCODING.DESKTOP_SIZE ||
      (encoding === ENCODING.EXTENDED_DESKTOP_SIZE && changesSize(rectangle))
    if (!isSize) return
    this.#toRecording.end()
    this.#options.recorder.desktopSize(width, height)
    if (width === this.#lastSize.width && height === this.#lastSize.height) return
    this.#lastSize = { width, height }
    this.#options.onResized(encoding !== ENCODING.DESKTOP_SIZE || this.viewerKnowsSizes)
  }

  #rename(rectangle: Uint8Array): void {
    this.#sendNow(encodeDesktopName(desktopName(parseDesktopName(rectangle), this.#options.isRecorded)))
  }

  #stopped(): void {
    this.#isStopping = false
    const format = this.#formatAtStop
    this.#formatAtStop = undefined
    if (format) this.#change(format)
  }

  /** Sends a message of the bastion's own, now or after the current update. */
  #sendOwn(kind: string, message: Buffer): void {
    if (this.#stream.isInUpdate) this.#own.set(kind, message)
    else this.#sendNow(message)
  }

  #sendNow(bytes: Buffer): void {
    this.#toViewer.end()
    this.#options.send(bytes)
  }

  /** Shows a line in the title of the viewer's window, if the viewer supports it, and rings a bell. */
  title(text: string): void {
    this.#sendOwn('title', Buffer.concat([encodeUpdateHeader(1), encodeDesktopName(text), encodeBell()]))
  }

  /** Sends the size of the target's desktop to a viewer that has requested it by these encodings. */
  tellSize(encodings: readonly number[]): void {
    const { width, height } = this.#stream
    const rectangle = encodings.includes(ENCODING.EXTENDED_DESKTOP_SIZE)
      ? this.#size(BY_SERVER, GRANTED)
      : encodeDesktopSize(width, height)
    this.#sendOwn('size', Buffer.concat([encodeUpdateHeader(1), rectangle]))
  }

  /** Refuses a viewer's request for another size. */
  refuseSize(): void {
    this.#sendOwn('size', Buffer.concat([encodeUpdateHeader(1), this.#size(BY_VIEWER, PROHIBITED)]))
  }

  #size(reason: number, status: number): Buffer {
    const { width, height } = this.#stream
    const screen = { id: 0, x: 0, y: 0, width, height, flags: 0 }
    return encodeExtendedDesktopSize(reason, status, width, height, [screen])
  }
}
