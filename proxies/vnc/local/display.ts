/**
 * Shows the bastion's own screens to a viewer, between ServerInit and the relay: answers its requests with what has
 * changed, in its pixel format, and makes keys and clicks of its events. It reads nothing itself: whoever reads the
 * viewer's messages gives them to it or to the relay, so a change of hands loses nothing.
 */
import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import { intersection, joined, type Rectangle } from '../../desktop/scene.ts'
import type { KeyPress, PointerState, Screen, Size } from '../../desktop/screen.ts'
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
import { Damage } from './damage.ts'
import { bandsOf, PixelEncoder } from './update.ts'
import { ViewerInput } from './viewer-input.ts'

export interface LocalDisplayOptions {
  pipe: { write(bytes: Uint8Array): void; readonly congested: boolean }
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

/** Screens are told the time so often. */
const TICK_MS = 250
/** Between two updates: nobody types or scrolls faster than that. */
export const UPDATE_INTERVAL_MS = 30
/** A viewer has so long for the rest of the update that is being sent. */
export const RELEASE_MS = 10_000
/** Events of keys and the pointer that are dealt with in one turn of the event loop, and that wait at most. */
const EVENTS_A_TURN = 16
export const MAX_EVENTS = 1024
/** ExtendedDesktopSize: whose wish a size is, and what came of it. */
const OWN_WISH = 0
const VIEWER_WISH = 1
const GRANTED = 0
const PROHIBITED = 1
const SCREEN_ID = 1

/** One that is being sent: in the format, and of the screen, that were when it began. */
interface Update {
  screen: Screen
  encoder: PixelEncoder
  knowsHextile: boolean
  bands: Rectangle[]
}

type Input = { press: KeyPress } | { pointer: PointerState }

export class LocalDisplay {
  readonly #options: LocalDisplayOptions
  readonly #now: () => number
  readonly #input = new ViewerInput()
  #events: Input[] = []
  /** In this turn. */
  #dealtWith = 0
  /** The next events, and the next part of an update, have a turn of their own. */
  #eventsTurn: NodeJS.Immediate | undefined
  #updateTurn: NodeJS.Immediate | undefined
  #clock: NodeJS.Timeout | undefined
  #screen: Screen | undefined
  #onOutcome: ((outcome: unknown) => void) | undefined
  #size: Size
  #encoder: PixelEncoder
  #encodings: readonly number[] = []
  #request: ViewerState['request']
  #wish: SizeWish | undefined
  #cutText: Uint8Array | undefined
  /** What the viewer does not have yet, in pixels. */
  readonly #damage = new Damage()
  /** Rectangles that tell of something else than pixels, for the next update. */
  readonly #news = new Map<'size' | 'cursor' | 'name', () => Buffer>()
  #owesColourMap = false
  #update: Update | undefined
  #lastUpdate = Number.NEGATIVE_INFINITY
  #pause: NodeJS.Timeout | undefined
  /** Resolves when the update that is being sent is whole. */
  #onWhole: (() => void) | undefined
  #isOver = false

  constructor(options: LocalDisplayOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#size = options.size
    this.#encoder = new PixelEncoder(options.format)
    this.#owesColourMap = !options.format.isTrueColour
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
    if (this.#isOver) return
    const { width, height } = screen
    if (width !== this.#size.width || height !== this.#size.height) {
      if (this.canResize) this.#resize({ width, height }, OWN_WISH)
      else screen.resize(this.#size)
    }
    this.#screen = screen
    this.#onOutcome = onOutcome as ((outcome: unknown) => void) | undefined
    this.#events = []
    this.#input.begin()
    this.#damage.add(this.#whole)
    screen.tick(this.#now())
    this.#clock ??= setInterval(() => this.#tick(), TICK_MS)
    this.#settle()
  }

  /** The same, as a promise: it stays open where another screen takes its place. */
  ask<Outcome>(screen: Screen<Outcome>): Promise<Outcome> {
    return new Promise((resolve) => this.show(screen, resolve))
  }

  /** Tells the viewer another name of the desktop, where it knows that. */
  rename(name: string): void {
    this.#news.set('name', () => encodeDesktopName(name))
    this.#settle()
  }

  /** A message of the viewer; its bytes are copied where they are kept. */
  message(message: ClientMessage): void {
    if (this.#isOver) return
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
        if (press) this.#queue({ press })
        return
      }
      case 'pointer':
        this.#queue({ pointer: this.#input.pointer(message.x, message.y, message.buttons) })
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

  /** The pipe takes more again. */
  drained(): void {
    this.#settle()
  }

  /**
   * Shows nothing any more. Resolves as soon as the update that is being sent is whole, for the relay to go on from there,
   * or when it is closed. Rejects where the viewer does not take the rest of it in time.
   */
  async release(): Promise<ViewerState> {
    this.#screen = undefined
    this.#onOutcome = undefined
    if (this.#update) await this.#whenWhole()
    this.close()
    return {
      size: this.#size,
      format: this.#encoder.format,
      encodings: this.#encodings,
      request: this.#request,
      wish: this.#wish,
      cutText: this.#cutText,
    }
  }

  async #whenWhole(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        this.#onWhole = resolve
        const late = () => reject(new Error('the viewer does not take what it is shown'))
        timer = setTimeout(late, RELEASE_MS)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  /** The connection is gone, or somebody else's. */
  close(): void {
    this.#isOver = true
    clearInterval(this.#clock)
    clearTimeout(this.#pause)
    clearImmediate(this.#eventsTurn)
    clearImmediate(this.#updateTurn)
    this.#events = []
    this.#onWhole?.()
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
    this.#settle()
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
      this.#settle()
      return
    }
    this.#resize({ width, height }, VIEWER_WISH)
    this.#screen?.resize({ width, height })
    this.#settle()
  }

  #resize(size: Size, whose: number): void {
    this.#size = size
    this.#damage.clear()
    this.#damage.add(this.#whole)
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

  #queue(event: Input): void {
    if (!this.#screen || this.#events.length >= MAX_EVENTS) return
    this.#events.push(event)
    this.#work()
  }

  /** What a key costs, as a search of thousands of targets, nobody can make the others wait for many times over. */
  #work(): void {
    while (
      this.#events.length > 0 &&
      this.#dealtWith < EVENTS_A_TURN &&
      this.#screen?.outcome === undefined
    ) {
      const event = this.#events.shift()!
      this.#dealtWith++
      if ('press' in event) this.#screen?.key(event.press)
      else this.#screen?.pointer(event.pointer)
    }
    this.#eventsTurn ??= setImmediate(() => {
      this.#eventsTurn = undefined
      this.#dealtWith = 0
      if (this.#events.length > 0) this.#work()
    })
    this.#settle()
  }

  #tick(): void {
    this.#screen?.tick(this.#now())
    this.#settle()
  }

  /** After anything that happened: the outcome, and what can be sent. */
  #settle(): void {
    if (this.#isOver) return
    const screen = this.#screen
    const tell = this.#onOutcome
    if (screen?.outcome !== undefined && tell) {
      this.#onOutcome = undefined
      // Whoever is told may take the viewer over, which is not for the middle of something.
      queueMicrotask(() => {
        if (this.#screen === screen && !this.#isOver) tell(screen.outcome)
      })
    }
    if (this.#update) this.#send(this.#update)
    else this.#begin()
  }

  /** Begins an update if the viewer waits for one and there is something to tell. */
  #begin(): void {
    if (!this.#request || !this.#screen || this.#pause || this.#options.pipe.congested) return
    const wait = this.#lastUpdate + UPDATE_INTERVAL_MS - this.#now()
    if (wait > 0) {
      this.#pause = setTimeout(() => {
        this.#pause = undefined
        this.#settle()
      }, wait)
      return
    }
    for (const box of this.#screen.takeDamage()) this.#damage.add(box)
    const { isIncremental, area } = this.#request
    const { x, y, width, height } = area
    const part = isIncremental ? undefined : intersection({ left: x, top: y, width, height }, this.#whole)
    if (part) this.#damage.add(part)
    const news = this.#takeNews()
    // What is sent with a change of size is lost in it (RFC 6143 7.8.2).
    const due = news.isSize ? [] : joined(this.#damage.take({ left: x, top: y, width, height }))
    const bands = due.flatMap(bandsOf)
    if (bands.length === 0 && news.rectangles.length === 0) return
    this.#request = undefined
    this.#lastUpdate = this.#now()
    const map = this.#owesColourMap ? [this.#encoder.colourMap()] : []
    this.#owesColourMap = false
    const header = encodeUpdateHeader(news.rectangles.length + bands.length)
    this.#options.pipe.write(Buffer.concat([...map, header, ...news.rectangles]))
    if (bands.length === 0) return
    const knowsHextile = this.#knows(ENCODING.HEXTILE)
    this.#update = { screen: this.#screen, encoder: this.#encoder, knowsHextile, bands }
    this.#send(this.#update)
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

  /** A rectangle a turn, while the viewer takes them. */
  #send(update: Update): void {
    if (this.#updateTurn || this.#options.pipe.congested) return
    const { screen, encoder, knowsHextile, bands } = update
    const band = bands.shift()
    if (band) {
      const rectangle = encoder.rectangle(band.left, band.top, screen.paint(band), knowsHextile)
      this.#options.pipe.write(rectangle)
    }
    if (bands.length === 0) {
      this.#update = undefined
      this.#onWhole?.()
      this.#begin()
      return
    }
    this.#updateTurn = setImmediate(() => {
      this.#updateTurn = undefined
      this.#send(update)
    })
  }
}

function around(one: Area, other: Area): Area {
  const x = Math.min(one.x, other.x)
  const y = Math.min(one.y, other.y)
  const width = Math.max(one.x + one.width, other.x + other.width) - x
  return { x, y, width, height: Math.max(one.y + one.height, other.y + other.height) - y }
}
