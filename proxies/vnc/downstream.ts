/** The target's way to the viewer: its very bytes, recorded as they pass; what is not theirs to see stays behind. */
import { Buffer } from 'node:buffer'
import type { ClipboardGuard } from './clipboard.ts'
import { ENCODING } from './codec/encodings.ts'
import type { PixelFormat } from './codec/pixel-format.ts'
import { changesSize, parseDesktopName } from './codec/pseudo-rectangle.ts'
import {
  encodeBell,
  encodeDesktopName,
  encodeDesktopSize,
  encodeExtendedDesktopSize,
  encodeUpdateHeader,
} from './codec/server-encoder.ts'
import type { ServerInit } from './codec/server-init.ts'
import { type Rectangle, ServerStream, type ServerUnit, type ServerVisitor } from './codec/server-stream.ts'
import type { GraphicsTap } from './guests/tap.ts'
import type { VncRecorder } from './recorder.ts'
import { Run } from './run.ts'
import { desktopName } from './texts.ts'

export interface DownstreamOptions {
  /** Views, valid during the call. */
  send: (bytes: Uint8Array) => void
  recorder: VncRecorder
  clipboard: ClipboardGuard
  isRecorded: boolean
  /** The target has said that it knows this extension. */
  onExtension: (extension: 'extended-clipboard' | 'extended-buttons') => void
  /** An update is complete. */
  onUpdate: () => void
}

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

  constructor(init: ServerInit, options: DownstreamOptions) {
    this.#options = options
    this.#format = init.format
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

  /** That the viewer has asked for last. */
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

  /** From now on the target may send these. */
  ask(encodings: readonly number[]): void {
    this.#stream.ask(encodings)
  }

  /**
   * The viewer has asked for another format, and its message goes to the target now. Viewers ask when no update is
   * under way but one that has begun to come, and that one still has the old format. With continuous updates they stop
   * those first, and the format changes with the answer to that.
   */
  setPixelFormat(format: PixelFormat): void {
    this.#format = format
    if (this.#isStopping) this.#formatAtStop = format
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
    this.#options.recorder.pixelFormat(format)
    this.tap?.pixelFormat(format)
  }

  begin(unit: ServerUnit): void {
    this.#unit = unit
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
        else this.#toViewer.add(piece)
        if (isEnd) this.#rectangleEnd(unit)
        return
      case 'cut-text':
        if (this.#options.clipboard.passesText('down', piece.subarray(CLASSIC_BODY)))
          this.#toViewer.add(piece)
        return
      case 'extended-cut-text':
        this.#options.onExtension('extended-clipboard')
        if (this.#options.clipboard.passesExtended('down', unit.flags, piece.subarray(EXTENDED_BODY)))
          this.#toViewer.add(piece)
        return
      case 'end-of-continuous-updates':
        this.#toViewer.add(piece)
        this.#stopped()
        return
      default:
        this.#toViewer.add(piece)
    }
  }

  updateEnd(): void {
    if (this.#nextFormat) {
      this.#toRecording.end()
      this.#formatFrom(this.#nextFormat)
      this.#nextFormat = undefined
    }
    this.tap?.updateEnd()
    for (const message of this.#own.values()) this.#sendNow(message)
    this.#own.clear()
    this.#options.onUpdate()
  }

  #rectangleEnd(rectangle: Rectangle): void {
    const { encoding, width, height } = rectangle
    if (encoding === ENCODING.EXTENDED_MOUSE_BUTTONS) this.#options.onExtension('extended-buttons')
    const isSize =
      encoding === ENCODING.DESKTOP_SIZE ||
      (encoding === ENCODING.EXTENDED_DESKTOP_SIZE && changesSize(rectangle))
    if (isSize) this.#options.recorder.desktopSize(width, height)
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
