/**
 * Shows the bastion's own screens to a viewer, between ServerInit and the relay: answers its requests with what has
 * changed, in its pixel format, and makes keys and clicks of its events. It reads nothing itself: whoever reads the
 * viewer's messages gives them to it or to the relay, so a change of hands loses nothing.
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
  /** As ServerInit has said. */
  size: Size
  format: PixelFormat
  /** There is no target yet: the viewer's wish for another size is granted. Else it is kept for the relay. */
  mayResize: boolean
  /** Milliseconds of a clock that never goes back. */
  now?: () => number
}

/** What the relay has to know of a viewer that it takes over. */
export interface ViewerState {
  size: Size
  format: PixelFormat
  /** Of its last SetEncodings, as they came. */
  encodings: readonly number[]
  /** Asked for, and not answered: everything has to be sent for it. */
  request: { isIncremental: boolean; area: Area } | undefined
  wish: SizeWish | undefined
  /** Of its last ClientCutText, in Latin-1. */
  cutText: Uint8Array | undefined
}

export interface SizeWish {
  width: number
  height: number
  screens: readonly WishedScreen[]
}

/** ExtendedDesktopSize: whose wish a size is, and what came of it. */
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
  /** Rectangles that tell of something else than pixels, for the next update. */
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

  /** What the viewer takes its desktop for, or is going to with the next update. */
  get size(): Size {
    return this.#size
  }

  /** The viewer has said that its desktop may change its size. */
  get canResize(): boolean {
    return this.#knows(ENCODING.EXTENDED_DESKTOP_SIZE) || this.#knows(ENCODING.DESKTOP_SIZE)
  }

  /**
   * Shows it from now on; `onOutcome` is called once, and never after another screen has taken its place. Where the
   * viewer cannot have the screen's size, the screen gets the viewer's.
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

  /** The same, as a promise: it stays open where another screen takes its place. */
  ask<Outcome>(screen: Screen<Outcome>): Promise<Outcome> {
    return new Promise((resolve) => this.show(screen, resolve))
  }

  /** Tells the viewer another name of the desktop, where it knows that. */
  rename(name: string): void {
    this.#news.set('name', () => encodeDesktopName(name))
    this.#stage.settle()
  }

  /** A message of the viewer; its bytes are copied where they are kept. */
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
        // A viewer is told of the screen's layout before it may ask for another one.
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
        // The bastion has not said that it knows these, so a viewer has no use for them.
        return
    }
  }

  /** The stream takes more again. */
  drained(): void {
    this.#stage.settle()
  }

  /**
   * Shows nothing any more. Resolves as soon as the update that is being sent is whole, for the relay to go on from there,
   * or when it is closed. Rejects where the viewer does not take the rest of it in time.
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

  /** The connection is gone, or somebody else's. */
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
    // Of several that wait, those that want all of their part become one around them.
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

  /** The viewer waits: answers if there is something to tell. */
  #begin(screen: Screen): Drawing | undefined {
    const { isIncremental, area } = this.#request!
    const { damage } = this.#stage
    const { x, y, width, height } = area
    const part = isIncremental ? undefined : intersection({ left: x, top: y, width, height }, this.#whole)
    if (part) damage.add(part)
    const news = this.#takeNews()
    // What is sent with a change of size is lost in it (RFC 6143 7.8.2).
    const due = news.isSize ? [] : joined(damage.take({ left: x, top: y, width, height }))
    const parts = due.flatMap(bandsOf)
    if (parts.length === 0 && news.rectangles.length === 0) return undefined
    this.#request = undefined
    const map = this.#owesColourMap ? [this.#encoder.colourMap()] : []
    this.#owesColourMap = false
    const header = encodeUpdateHeader(news.rectangles.length + parts.length)
    const { stream } = this.#options
    stream.write(Buffer.concat([...map, header, ...news.rectangles]))
    // In the format that was when the update began.
    const encoder = this.#encoder
    const knowsHextile = this.#knows(ENCODING.HEXTILE)
    const draw = (band: Rectangle): void =>
      stream.write(encoder.rectangle(band.left, band.top, screen.paint(band), knowsHextile))
    return { parts, draw }
  }

  /** Those that the viewer knows. */
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
