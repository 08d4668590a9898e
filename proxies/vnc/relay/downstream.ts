/** The target's way to the viewer: its very bytes, recorded as they pass; what is not theirs to see stays behind. */
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

/** What a target knows of only once it has said so. */
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
  /** Views, valid during the call. */
  send: (bytes: Uint8Array) => void
  recorder: VncRecorder
  clipboard: ClipboardGuard
  isRecorded: boolean
  /** The target has said that it knows this extension. */
  onExtension: (extension: Extension) => void
  /** An update is complete. */
  onUpdate: () => void
  watch: PictureWatch
  /** The desktop has another size; false: the viewer cannot follow, and what tells it does not go on. */
  onResized: (isFollowed: boolean) => void
  /** A fence of the bastion's own, or an answer to the target's. */
  sendFence: (flags: number, payload: Uint8Array) => void
}

/** A rectangle of no pixels, in the place of one that the viewer does not know. */
const NO_PIXELS = encodeRectangleHeader({ x: 0, y: 0, width: 0, height: 0 }, ENCODING.RAW)

const FENCE_BODY = 9
const OWN_FENCE_BYTES = 16
/** Changes of the pixel format that the target has not answered for. */
const MAX_FORMATS = 32

/** Where an extended cut text's data begins. */
const EXTENDED_BODY = 12
const CLASSIC_BODY = 8

/** Of an ExtendedDesktopSize: whose wish it is, and what came of it. */
const BY_SERVER = 0
const BY_VIEWER = 1
const GRANTED = 0
const PROHIBITED = 1

export class Downstream implements ServerVisitor {
  /** While there are guests: what is recorded goes there, too. */
  tap: GraphicsTap | undefined
  readonly #options: DownstreamOptions
  readonly #stream: ServerStream
  readonly #toViewer: Run
  readonly #toRecording: Run
  #unit: ServerUnit = { kind: 'bell' }
  /** Recorded from the end of the update on that is under way. */
  #nextFormat: PixelFormat | undefined
  /** Holds from the end of continuous updates on. */
  #formatAtStop: PixelFormat | undefined
  #isStopping = false
  #format: PixelFormat
  /** The bastion's own messages, which wait for the end of an update: of each kind the last. */
  readonly #own = new Map<string, Buffer>()
  #isInMessage = false
  readonly #known = new Set<Extension>()
  #knowsFences = false
  /** Else fences are between the target and the bastion alone. */
  viewerKnowsFences = false
  /** It has asked for news of the desktop's size that stand alone. */
  viewerKnowsSizes = false
  /** Those that the viewer is asked for. */
  readonly fences: Fences
  #lastSize: { width: number; height: number }
  /** Formats that hold from the target's answer to a fence on, whose payload nobody can guess. */
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

  /** That the target was asked for last. */
  get format(): PixelFormat {
    return this.#format
  }

  /** An update has begun to come and has not ended. */
  get isInUpdate(): boolean {
    return this.#stream.isInUpdate
  }

  /** The target has begun something and owes the rest of it. */
  get isInMessage(): boolean {
    return this.#isInMessage || this.#stream.isInUpdate
  }

  /** Throws MalformedError. What came before the fault has been passed on and recorded. */
  receive(chunk: Uint8Array): void {
    try {
      this.#stream.feed(chunk)
    } finally {
      this.#toViewer.end()
      this.#toRecording.end()
      this.tap?.flush()
    }
  }

  /** Where its pixel format changes can be seen in what the target sends. */
  get tellsFormats(): boolean {
    return this.#knowsFences || this.#isStopping
  }

  /** The target has said that it knows it. */
  knows(extension: Extension): boolean {
    return this.#known.has(extension)
  }

  #learned(extension: Extension): void {
    if (this.#known.has(extension)) return
    this.#known.add(extension)
    this.#options.onExtension(extension)
  }

  /** From now on the target may send these. */
  ask(encodings: readonly number[]): void {
    this.#stream.ask(encodings)
  }

  /**
   * The viewer has asked for another format, and its message goes to the target next. A target that knows fences answers one
   * where the format changes. Others are told when no update is under way but one that has begun to come, and that one
   * still has the old format; of continuous updates it is taken that viewers stop those first, and the format changes with
   * the answer to that.
   */
  setPixelFormat(format: PixelFormat): void {
    this.#format = format
    if (this.#knowsFences) {
      if (this.#awaited.length === MAX_FORMATS)
        throw new MalformedError('vnc: a pixel format was expected now and then, found one after the other')
      const payload = randomBytes(OWN_FENCE_BYTES)
      this.#awaited.push({ payload, format })
      this.#options.sendFence(FENCE.REQUEST | FENCE.BLOCK_BEFORE | FENCE.SYNC_NEXT, payload)
    } else if (this.#isStopping) this.#formatAtStop = format
    else this.#change(format)
  }

  /** The viewer has asked the target to send updates of its own accord, or to stop that. */
  continuousUpdates(isEnabled: boolean): void {
    this.#isStopping = !isEnabled
  }

  #change(format: PixelFormat): void {
    this.#stream.setPixelFormat(format)
    if (this.#stream.isInUpdate) this.#nextFormat = format
    else this.#formatFrom(format)
  }

  /** From the next update on. */
  #formatFrom(format: PixelFormat): void {
    // An update that came in the same piece is recorded first: it has the format before.
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
      // All before it has been dealt with here.
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

  /** A message of the bastion's own, now or after the update that is under way. */
  #sendOwn(kind: string, message: Buffer): void {
    if (this.#stream.isInUpdate) this.#own.set(kind, message)
    else this.#sendNow(message)
  }

  #sendNow(bytes: Buffer): void {
    this.#toViewer.end()
    this.#options.send(bytes)
  }

  /** Shows the viewer a line in the title of its window, where it takes one; a bell goes with it. */
  title(text: string): void {
    this.#sendOwn('title', Buffer.concat([encodeUpdateHeader(1), encodeDesktopName(text), encodeBell()]))
  }

  /** Tells the viewer the size of the target's desktop, which has asked for such news with these encodings. */
  tellSize(encodings: readonly number[]): void {
    const { width, height } = this.#stream
    const rectangle = encodings.includes(ENCODING.EXTENDED_DESKTOP_SIZE)
      ? this.#size(BY_SERVER, GRANTED)
      : encodeDesktopSize(width, height)
    this.#sendOwn('size', Buffer.concat([encodeUpdateHeader(1), rectangle]))
  }

  /** Tells a viewer that its wish for another size is not granted. */
  refuseSize(): void {
    this.#sendOwn('size', Buffer.concat([encodeUpdateHeader(1), this.#size(BY_VIEWER, PROHIBITED)]))
  }

  #size(reason: number, status: number): Buffer {
    const { width, height } = this.#stream
    const screen = { id: 0, x: 0, y: 0, width, height, flags: 0 }
    return encodeExtendedDesktopSize(reason, status, width, height, [screen])
  }
}
