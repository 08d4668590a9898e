/**
 * Shows the bastion's own screens to a client, between its Client Info and a target's desktop, or after it: offers a
 * desktop, draws on it what has changed, and makes keys and clicks of its events. It reads nothing itself: whoever
 * reads the client's messages gives them to it or to the relay.
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

/** Of a client that is past its Client Info. */
export interface DisplayClient {
  readonly stream: { readonly congested: boolean }
  readonly settings: {
    readonly core: Pick<ClientCore, 'width' | 'height' | 'colourDepth' | 'keyboardLayout'>
  }
  /** As the desktop's PDUs name it. */
  readonly user: number
  readonly isLicensed: boolean
  license(): void
  sendIo(data: Uint8Array): void
  sendFastPath(pdu: Uint8Array): void
}

export interface LocalDisplayOptions {
  client: DisplayClient
  /** Of the desktop; by default what the client has asked for. */
  size?: Size
  /** Bits a pixel; by default what the client has asked for. A desktop takes another's place best with the same. */
  depth?: number
  /** Milliseconds of a clock that never goes back. */
  now?: () => number
}

const NOTHING = new Uint8Array(0)
/** A client gets all of its desktop again so often, and the more seldom the larger it is: asking costs it nothing. */
const REPAINT_MS = 1_000
const REPAINT_PIXELS_A_MS = 4_000
/** One notch of a wheel. */
const NOTCH = 120

export class LocalDisplay {
  /** The person closes the client's window. */
  onShutdown: (() => void) | undefined
  /** Keys or the pointer have come. */
  onInput: (() => void) | undefined
  readonly size: Size
  readonly #depth: Depth
  readonly #desktop: FrontDesktop
  readonly #stage: Stage
  readonly #keyboard: Keyboard
  #pointer = { x: 0, y: 0, left: false }
  /** Of a wheel that turns by less than a notch. */
  #wheel = 0
  /** The client has some pointer of a target's. */
  #owesPointer = true
  /** Until all may be drawn again. */
  #repaint: NodeJS.Timeout | undefined
  #isRepaintAsked = false
  #onReady: (() => void) | undefined

  /** Offers the client the desktop, for which it is given its license first. */
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

  /** What the client's keyboard is taken to be, for people. */
  get keyboard(): string {
    return this.#keyboard.name
  }

  /** Shows it from now on, in the desktop's size; `onOutcome` is called once, and never after another has taken its place. */
  show<Outcome>(screen: Screen<Outcome>, onOutcome?: (outcome: Outcome) => void): void {
    const { width, height } = this.size
    if (screen.width !== width || screen.height !== height) screen.resize(this.size)
    this.#keyboard.begin()
    this.#stage.show(screen, onOutcome)
  }

  /** The same, as a promise: it stays open where another screen takes its place. */
  ask<Outcome>(screen: Screen<Outcome>): Promise<Outcome> {
    return new Promise((resolve) => this.show(screen, resolve))
  }

  /** Share PDUs on the I/O channel. Throws MalformedError. */
  io(data: Uint8Array): void {
    this.#desktop.receiveIo(data)
  }

  /** A PDU of input. Throws MalformedError. */
  fastPath(pdu: Uint8Array): void {
    this.#desktop.receiveFastPath(pdu)
  }

  /** Nothing comes of virtual channels before there is a target. */
  channel(_index: number, _chunk: Uint8Array): void {}

  /** The client's stream takes more again. */
  drained(): void {
    this.#stage.settle()
  }

  /** Tells the client why the connection is about to end (ERROR_INFO), where it has taken the desktop. */
  tellError(code: number): void {
    if (this.#desktop.isReady) this.#desktop.tellError(code)
  }

  /**
   * Shows nothing any more. Resolves when the desktop has been taken away from the client, for another to be offered, or
   * when it is closed. Rejects where the client has not taken it in time.
   */
  async release(): Promise<void> {
    if (this.#stage.isOver) return
    this.#stage.close()
    clearTimeout(this.#repaint)
    // In the middle of taking a desktop clients do not know what to make of its end.
    if (!this.#desktop.isReady) await this.#whenReady()
    if (this.#desktop.isReady) this.#desktop.deactivate()
  }

  async #whenReady(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        this.#onReady = resolve
        const late = () => reject(new Error('the client does not take the desktop that it is offered'))
        timer = setTimeout(late, RELEASE_MS)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  /** The connection is gone. */
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
          // Buttons four and five; and the bastion has not said that it knows moves from where the pointer was.
          break
      }
    }
  }

  #point(flags: number, x: number, y: number): void {
    if (flags & POINTER_FLAG.wheel) {
      this.#wheel += wheelOf(flags)
      const notches = Math.trunc(this.#wheel / NOTCH)
      this.#wheel -= notches * NOTCH
      // Away from the person is up.
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
