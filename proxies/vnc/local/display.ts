/**
 * Shows the bastion's own screens to a viewer, between ServerInit and the relay: sends changes on request in
 * the viewer's pixel format, and converts its events to keys and clicks. It does not read the connection: the
 * reader gives messages to it or to the relay, so that none is lost when the relay takes over.
 */
import { Buffer } from 'node:buffer'
import { bandsOf } from '../../desktop/screens/damage.ts'
import { intersection, joined, type Rectangle } from '../../desktop/screens/scene.ts'
import type { Screen, Size } from '../../desktop/screens/screen.ts'
import { type Drawing, Stage } from '../../desktop/stage.ts'
import type { Area, ClientMessage } from '../codec/client-messages.ts'
import { ENCODING } from '../codec/encodings.ts'
import { FRAMEBUFFER_PIXEL_LIMIT, FRAMEBUFFER_SIDE_LIMIT } from '../codec/limits.ts'
import type { PixelFormat } from '../codec/pixel-format.ts'
import type { Screen as WishedScreen } from '../codec/screens.ts'
import {
  encodeDesktopName,
  encodeDesktopSize,
  encodeExtendedDesktopSize,
  encodeUpdateHeader,
} from '../codec/server-encoder.ts'
import { PixelEncoder } from './update.ts'
import { ViewerInput } from './viewer-input.ts'

export interface LocalDisplayOptions {
  stream: { write(bytes: Uint8Array): void; readonly congested: boolean }
  /** As in ServerInit. */
  size: Size
  format: PixelFormat
  /**
   * Grants the viewer's request for another size, because there is no target yet. If false, the request is
   * kept for the relay.
   */
  mayResize: boolean
  /** Milliseconds of a clock that never goes back. */
  now?: () => number
}

/** The state of a viewer that the relay takes over. */
export interface ViewerState {
  size: Size
  format: PixelFormat
  /** The last SetEncodings, unfiltered. */
  encodings: readonly number[]
  /** A request without an update yet: the relay has to send everything. */
  request: { isIncremental: boolean; area: Area } | undefined
  wish: SizeWish | undefined
  /** The last ClientCutText, in Latin-1. */
  cutText: Uint8Array | undefined
}

export interface SizeWish {
  width: number
  height: number
  screens: readonly WishedScreen[]
}

/** ExtendedDesktopSize: the requester of a size, and the result. */
const OWN_WISH = 0
const VIEWER_WISH = 1
const GRANTED = 0
const PROHIBITED = 1
const SCREEN_ID = 1

export class LocalDisplay {
  readonly #options: LocalDisplayOptions
  readonly #input = new ViewerInput()
  readonly #stage: Stage
  #size: Size
  #encoder: PixelEncoder
  #encodings: readonly number[] = []
  #request: ViewerState['request']
  #wish: SizeWish | undefined
  #cutText: Uint8Array | undefined
  /** Rectangles without pixels for the next update. */
  readonly #news = new Map<'size' | 'cursor' | 'name', () => Buffer>()
  #owesColourMap = false

  constructor(options: LocalDisplayOptions) {
    this.#options = options
    this.#size = options.size
    this.#encoder = new PixelEncoder(options.format)
    this.#owesColourMap = !options.format.isTrueColour
    this.#stage = new Stage({
      stream: options.stream,
      ...(options.now && { now: options.now }),
      isAwaited: () => this.#request !== undefined,
      begin: (screen) => this.#begin(screen),
    })
  }

  /** The desktop's size in the viewer, or after the next update. */
  get size(): Size {
    return this.#size
  }

  /** True if the viewer supports a change of size. */
  get canResize(): boolean {
    return this.#knows(ENCODING.EXTENDED_DESKTOP_SIZE) || this.#knows(ENCODING.DESKTOP_SIZE)
  }

  /**
   * Shows the screen from now on. `onOutcome` is called once, and never after another screen has replaced it.
   * If the viewer cannot have the screen's size, the screen gets the viewer's.
   */
  show<Outcome>(screen: Screen<Outcome>, onOutcome?: (outcome: Outcome) => void): void {
    if (this.#stage.isOver) return
    const { width, height } = screen
    if (width !== this.#size.width || height !== this.#size.height) {
      if (this.canResize) this.#resize({ width, height }, OWN_WISH)
      else screen.resize(this.#size)
    }
    this.#input.begin()
    this.#stage.show(screen, onOutcome)
  }

  /** Like `show`, as a promise: it stays pending if another screen replaces this one. */
  ask<Outcome>(screen: Screen<Outcome>): Promise<Outcome> {
    return new Promise((resolve) => this.show(screen, resolve))
  }

  /** Sends another name of the desktop, if the viewer supports it. */
  rename(name: string): void {
    this.#news.set('name', () => encodeDesktopName(name))
    this.#stage.settle()
  }

  /** Handles a message of the viewer; bytes that are kept are copied. */
  message(message: ClientMessage): void {
    if (this.#stage.isOver) return
    switch (message.kind) {
      case 'set-pixel-format':
        this.#encoder = new PixelEncoder(message.format)
        this.#owesColourMap = !message.format.isTrueColour
        this.#owe('cursor')
        return
      case 'set-encodings':
        this.#encodings = message.encodings
        this.#owe('cursor')
        // A viewer learns the screen layout before it may request another one.
        if (this.#knows(ENCODING.EXTENDED_DESKTOP_SIZE)) this.#tellSize(OWN_WISH, GRANTED)
        return
      case 'update-request':
        this.#ask(message)
        return
      case 'key': {
        const press = this.#input.key(message.isDown, message.keysym)
        if (press) this.#stage.key(press)
        return
      }
      case 'pointer':
        this.#stage.pointer(this.#input.pointer(message.x, message.y, message.buttons))
        return
      case 'cut-text':
        this.#cutText = Uint8Array.from(message.text)
        return
      case 'set-desktop-size':
        this.#wished(message)
        return
      default:
        // The bastion has not announced these extensions, so a viewer does not need them.
        return
    }
  }

  /** Called when the stream accepts data again. */
  drained(): void {
    this.#stage.settle()
  }

  /**
   * Removes the screen. Resolves when the current update is complete, for the relay to continue, or when the
   * display is closed. Rejects if the viewer does not accept the rest in time.
   */
  async release(): Promise<ViewerState> {
    await this.#stage.release()
    return {
      size: this.#size,
      format: this.#encoder.format,
      encodings: this.#encodings,
      request: this.#request,
      wish: this.#wish,
      cutText: this.#cutText,
    }
  }

  /** Stops everything: the connection is closed, or has another owner. */
  close(): void {
    this.#stage.close()
  }

  get #whole(): Rectangle {
    return { left: 0, top: 0, ...this.#size }
  }

  #knows(encoding: number): boolean {
    return this.#encodings.includes(encoding)
  }

  #ask({ isIncremental, x, y, width, height }: Area & { isIncremental: boolean }): void {
    const area = { x, y, width, height }
    const last = this.#request
    // Of several requests, those for everything are joined to one around them.
    if (!last || (last.isIncremental && !isIncremental)) this.#request = { isIncremental, area }
    else if (!isIncremental) this.#request = { isIncremental, area: around(last.area, area) }
    else if (last.isIncremental) this.#request = { isIncremental, area }
    this.#stage.settle()
  }

  #wished({ width, height, screens }: SizeWish): void {
    if (!this.#options.mayResize) {
      this.#wish = { width, height, screens: screens.map((screen) => ({ ...screen })) }
      return
    }
    const isFine =
      Math.min(width, height) > 0 &&
      Math.max(width, height) <= FRAMEBUFFER_SIDE_LIMIT &&
      width * height <= FRAMEBUFFER_PIXEL_LIMIT
    if (!isFine) {
      this.#tellSize(VIEWER_WISH, PROHIBITED)
      this.#stage.settle()
      return
    }
    this.#resize({ width, height }, VIEWER_WISH)
    this.#stage.screen?.resize({ width, height })
    this.#stage.settle()
  }

  #resize(size: Size, whose: number): void {
    this.#size = size
    this.#stage.damage.clear()
    this.#stage.damage.add(this.#whole)
    this.#tellSize(whose, GRANTED)
  }

  #tellSize(whose: number, status: number): void {
    const { width, height } = this.#size
    this.#news.set('size', () => {
      if (!this.#knows(ENCODING.EXTENDED_DESKTOP_SIZE)) return encodeDesktopSize(width, height)
      const screen = { id: SCREEN_ID, x: 0, y: 0, width, height, flags: 0 }
      return encodeExtendedDesktopSize(whose, status, width, height, [screen])
    })
  }

  #owe(what: 'cursor'): void {
    this.#news.set(what, () => this.#encoder.arrow())
  }

  /** Answers a waiting request if there is anything to send. */
  #begin(screen: Screen): Drawing | undefined {
    const { isIncremental, area } = this.#request!
    const { damage } = this.#stage
    const { x, y, width, height } = area
    const part = isIncremental ? undefined : intersection({ left: x, top: y, width, height }, this.#whole)
    if (part) damage.add(part)
    const news = this.#takeNews()
    // A viewer drops rectangles in the same update as a change of size (RFC 6143 7.8.2).
    const due = news.isSize ? [] : joined(damage.take({ left: x, top: y, width, height }))
    const parts = due.flatMap(bandsOf)
    if (parts.length === 0 && news.rectangles.length === 0) return undefined
    this.#request = undefined
    const map = this.#owesColourMap ? [this.#encoder.colourMap()] : []
    this.#owesColourMap = false
    const header = encodeUpdateHeader(news.rectangles.length + parts.length)
    const { stream } = this.#options
    stream.write(Buffer.concat([...map, header, ...news.rectangles]))
    // Uses the format of the update's beginning to its end.
    const encoder = this.#encoder
    const knowsHextile = this.#knows(ENCODING.HEXTILE)
    const draw = (band: Rectangle): void =>
      stream.write(encoder.rectangle(band.left, band.top, screen.paint(band), knowsHextile))
    return { parts, draw }
  }

  /** Takes the rectangles that the viewer supports. */
  #takeNews(): { rectangles: Buffer[]; isSize: boolean } {
    const rectangles: Buffer[] = []
    const take = (what: 'size' | 'cursor' | 'name', isKnown: boolean): boolean => {
      const rectangle = isKnown ? this.#news.get(what) : undefined
      if (!rectangle) return false
      this.#news.delete(what)
      rectangles.push(rectangle())
      return true
    }
    take('cursor', this.#knows(ENCODING.CURSOR))
    take('name', this.#knows(ENCODING.DESKTOP_NAME))
    return { isSize: take('size', this.canResize), rectangles }
  }
}

function around(one: Area, other: Area): Area {
  const x = Math.min(one.x, other.x)
  const y = Math.min(one.y, other.y)
  const width = Math.max(one.x + one.width, other.x + other.width) - x
  return { x, y, width, height: Math.max(one.y + one.height, other.y + other.height) - y }
}
