/**
 * Shows the bastion's own screens to a client, before or after a target's desktop: offers a desktop, draws
 * changes on it, and converts its input to keys and clicks. Does not read the stream: the client's handler
 * delivers the messages.
 */
import { bandsOf } from '../../desktop/screens/damage.ts'
import { joined, type Rectangle } from '../../desktop/screens/scene.ts'
import type { Screen, Size } from '../../desktop/screens/screen.ts'
import { type Drawing, RELEASE_MS, Stage } from '../../desktop/stage.ts'
import type { ClientCore } from '../codec/client-data.ts'
import { type InputEvent, POINTER_FLAG, wheelOf } from '../codec/input.ts'
import { UPDATE } from '../codec/updates.ts'
import { FrontDesktop } from '../connection/front-desktop.ts'
import { type Depth, depthFor, encodeCanvas } from './bitmaps.ts'
import { Keyboard } from './keyboard.ts'

/** A client after its Client Info. */
export interface DisplayClient {
  readonly stream: { readonly congested: boolean }
  readonly settings: {
    readonly core: Pick<ClientCore, 'width' | 'height' | 'colourDepth' | 'keyboardLayout'>
  }
  /** User id for the desktop's PDUs. */
  readonly user: number
  readonly isLicensed: boolean
  license(): void
  sendIo(data: Uint8Array): void
  sendFastPath(pdu: Uint8Array): void
}

export interface LocalDisplayOptions {
  client: DisplayClient
  /** Size of the desktop. Default: the client's requested size. */
  size?: Size
  /** Bits per pixel. Default: the client's requested depth. A replacement should keep the desktop's depth. */
  depth?: number
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

const NOTHING = new Uint8Array(0)
/** Least time between full redraws, longer for larger desktops: requesting one costs the client nothing. */
const REPAINT_MS = 1_000
const REPAINT_PIXELS_A_MS = 4_000
/** One notch of a wheel. */
const NOTCH = 120

export class LocalDisplay {
  /** The user closes the client's window. */
  onShutdown: (() => void) | undefined
  /** A key or pointer event was received. */
  onInput: (() => void) | undefined
  readonly size: Size
  readonly #depth: Depth
  readonly #desktop: FrontDesktop
  readonly #stage: Stage
  readonly #keyboard: Keyboard
  #pointer = { x: 0, y: 0, left: false }
  /** Wheel rotation smaller than a notch, accumulated. */
  #wheel = 0
  /** The client still shows a target's pointer. */
  #owesPointer = true
  /** Runs until the next full redraw is allowed. */
  #repaint: NodeJS.Timeout | undefined
  #isRepaintAsked = false
  #onReady: (() => void) | undefined

  /** Offers the client the desktop, after licensing it if needed. */
  constructor({ client, size, depth, now }: LocalDisplayOptions) {
    const { core } = client.settings
    this.size = size ?? { width: core.width, height: core.height }
    this.#depth = depthFor(depth ?? core.colourDepth)
    this.#keyboard = new Keyboard(core.keyboardLayout)
    if (!client.isLicensed) client.license()
    this.#desktop = new FrontDesktop({
      desktop: { ...this.size, depth: this.#depth },
      user: client.user,
      sendIo: (data) => client.sendIo(data),
      sendFastPath: (pdu) => client.sendFastPath(pdu),
      visitor: {
        paint: () => this.#paint(),
        input: (events) => this.#input(events),
        shutdown: () => this.onShutdown?.(),
      },
    })
    this.#stage = new Stage({
      stream: client.stream,
      ...(now && { now }),
      isAwaited: () => this.#desktop.isReady,
      begin: (screen) => this.#begin(screen),
    })
  }

  /** Name of the keyboard layout, for users. */
  get keyboard(): string {
    return this.#keyboard.name
  }

  /** Shows the screen in the desktop's size. Calls `onOutcome` once, unless another screen replaces it. */
  show<Outcome>(screen: Screen<Outcome>, onOutcome?: (outcome: Outcome) => void): void {
    const { width, height } = this.size
    if (screen.width !== width || screen.height !== height) screen.resize(this.size)
    this.#keyboard.begin()
    this.#stage.show(screen, onOutcome)
  }

  /** As `show`, as a promise. It stays pending if another screen replaces this one. */
  ask<Outcome>(screen: Screen<Outcome>): Promise<Outcome> {
    return new Promise((resolve) => this.show(screen, resolve))
  }

  /** Receives share PDUs of the I/O channel. Throws MalformedError. */
  io(data: Uint8Array): void {
    this.#desktop.receiveIo(data)
  }

  /** Receives a PDU of input. Throws MalformedError. */
  fastPath(pdu: Uint8Array): void {
    this.#desktop.receiveFastPath(pdu)
  }

  /** Ignores virtual channels: there is no target yet. */
  channel(_index: number, _chunk: Uint8Array): void {}

  /** The client's stream accepts data again. */
  drained(): void {
    this.#stage.settle()
  }

  /** Sends the reason of the end (ERROR_INFO), if the client has confirmed the desktop. */
  tellError(code: number): void {
    if (this.#desktop.isReady) this.#desktop.tellError(code)
  }

  /**
   * Stops drawing. Resolves when the client's desktop is deactivated, so that another can be offered, or when
   * the display is closed. Rejects if the client does not confirm the desktop in time.
   */
  async release(): Promise<void> {
    if (this.#stage.isOver) return
    this.#stage.close()
    clearTimeout(this.#repaint)
    // Waits until the desktop is ready: clients cannot handle a deactivation while it starts.
    if (!this.#desktop.isReady) await this.#whenReady()
    if (this.#desktop.isReady) this.#desktop.deactivate()
  }

  async #whenReady(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        this.#onReady = resolve
        const late = () => reject(new Error('the client does not confirm the desktop that it is offered'))
        timer = setTimeout(late, RELEASE_MS)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  /** Stops drawing after the connection has closed. */
  close(): void {
    this.#stage.close()
    clearTimeout(this.#repaint)
    this.#onReady?.()
  }

  #paint(): void {
    this.#onReady?.()
    if (this.#stage.isOver) return
    if (this.#repaint) {
      this.#isRepaintAsked = true
      return
    }
    const { width, height } = this.size
    this.#repaint = setTimeout(
      () => {
        this.#repaint = undefined
        if (this.#isRepaintAsked) this.#paint()
      },
      REPAINT_MS + (width * height) / REPAINT_PIXELS_A_MS,
    )
    this.#isRepaintAsked = false
    this.#owesPointer = true
    this.#stage.damage.add({ left: 0, top: 0, width, height })
    this.#stage.settle()
  }

  #begin(screen: Screen): Drawing | undefined {
    const whole = { left: 0, top: 0, ...this.size }
    const parts = joined(this.#stage.damage.take(whole)).flatMap(bandsOf)
    if (parts.length === 0) return undefined
    if (this.#owesPointer) this.#desktop.draw({ code: UPDATE.pointerDefault, data: NOTHING })
    this.#owesPointer = false
    const draw = (part: Rectangle): void => {
      const updates = encodeCanvas(part.left, part.top, screen.paint(part), this.#depth)
      for (const update of updates) this.#desktop.draw(update)
    }
    return { parts, draw }
  }

  #input(events: readonly InputEvent[]): void {
    if (this.#stage.isOver) return
    this.onInput?.()
    for (const event of events) {
      switch (event.kind) {
        case 'key': {
          const press = this.#keyboard.key(event)
          if (press) this.#stage.key(press)
          break
        }
        case 'character': {
          const press = this.#keyboard.character(event)
          if (press) this.#stage.key(press)
          break
        }
        case 'locks':
          this.#keyboard.locks(event.flags)
          break
        case 'pointer':
          this.#point(event.flags, event.x, event.y)
          break
        default:
          // Ignores buttons four and five, and relative moves, which the bastion has not announced.
          break
      }
    }
  }

  #point(flags: number, x: number, y: number): void {
    if (flags & POINTER_FLAG.wheel) {
      this.#wheel += wheelOf(flags)
      const notches = Math.trunc(this.#wheel / NOTCH)
      this.#wheel -= notches * NOTCH
      // Rotation away from the user is up.
      if (notches !== 0) this.#stage.pointer({ ...this.#pointer, wheel: -notches })
      return
    }
    if (flags & POINTER_FLAG.horizontalWheel) return
    const isDown = (flags & POINTER_FLAG.down) !== 0
    const left = flags & POINTER_FLAG.left ? isDown : this.#pointer.left
    this.#pointer = { x, y, left }
    this.#stage.pointer(this.#pointer)
  }
}
