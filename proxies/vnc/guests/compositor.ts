/**
 * Draws a session's desktop for its guests: from the recorded frames, with the pointers of the active users.
 */
import { FRAME, type Frame } from '../../../recordings/container/frames.ts'
import { parsePointer } from '../../../recordings/decode/graphics/events.ts'
import type { Framebuffer } from '../../../recordings/decode/graphics/framebuffer.ts'
import { MalformedGraphics } from '../../../recordings/decode/graphics/malformed.ts'
import type { Rectangle } from '../../../recordings/decode/graphics/rectangle.ts'
import { RfbPainter } from '../../../recordings/decode/graphics/rfb/painter.ts'
import type { FromThread, ToThread } from './messages.ts'
import { GuestView, pixelsOf } from './view.ts'

/** Milliseconds between two updates of one guest. */
export const UPDATE_INTERVAL_MS = 40
/** A pointer's picture lies within this distance of its hot spot; larger pictures are partly drawn late. */
const POINTER_REACH = 64

export interface GuestCompositorOptions {
  post: (message: FromThread) => void
  /** Calls `call` once, after that time. */
  after: (milliseconds: number, call: () => void) => void
  /** Milliseconds of a clock that never goes back. */
  now: () => number
}

interface Guest {
  view: GuestView
  lastUpdate: number
}

export class GuestCompositor {
  readonly #options: GuestCompositorOptions
  readonly #guests = new Map<number, Guest>()
  #painter: RfbPainter | undefined
  #pointer: { x: number; y: number } | undefined
  #name: string | undefined
  #isWaiting = false

  constructor(options: GuestCompositorOptions) {
    this.#options = options
  }

  take(message: ToThread): void {
    switch (message.kind) {
      case 'begin':
        this.#begin(message)
        break
      case 'frame':
        this.#draw(message)
        this.#options.post({ kind: 'drawn', bytes: message.payload.length })
        break
      case 'join': {
        const { width, height } = message
        const view = new GuestView({ width, height })
        if (this.#name !== undefined) view.name = this.#name
        this.#guests.set(message.guest, { view, lastUpdate: Number.NEGATIVE_INFINITY })
        break
      }
      case 'leave':
        this.#guests.delete(message.guest)
        break
      case 'name':
        this.#name = message.name
        for (const { view } of this.#guests.values()) view.name = message.name
        break
      case 'format':
        this.#with(message.guest, (view) => {
          view.format = message.format
        })
        break
      case 'encodings':
        this.#with(message.guest, (view) => {
          view.encodings = message.encodings
        })
        break
      case 'request':
        this.#with(message.guest, (view) => view.request(message.isIncremental, message.area))
    }
    this.#flush()
  }

  #with(guest: number, change: (view: GuestView) => void): void {
    const known = this.#guests.get(guest)
    if (known) change(known.view)
  }

  /** Starts anew; a last picture of the same size stays until it is drawn over. */
  #begin(size: { width: number; height: number }): void {
    const last = this.#painter?.framebuffer
    try {
      this.#painter = new RfbPainter(size)
      if (last?.width === size.width && last.height === size.height) {
        this.#painter.framebuffer.pixels.set(last.pixels)
      }
    } catch (error) {
      this.#stopped(error)
    }
  }

  #draw(frame: Pick<Frame, 'type' | 'payload'>): void {
    const painter = this.#painter
    if (!painter) return
    painter.apply(frame)
    if (painter.stopped !== undefined) {
      this.#painter = undefined
      this.#options.post({ kind: 'stopped', reason: painter.stopped })
      return
    }
    if (frame.type === FRAME.pointer) {
      this.#touchPointer()
      this.#pointer = parsePointer(frame.payload)
      this.#touchPointer()
    }
    for (const rectangle of painter.framebuffer.takeDirty()) this.#touch(rectangle)
  }

  #touchPointer(): void {
    if (!this.#pointer) return
    const x = Math.max(0, this.#pointer.x - POINTER_REACH)
    const y = Math.max(0, this.#pointer.y - POINTER_REACH)
    this.#touch({
      x,
      y,
      width: this.#pointer.x + POINTER_REACH - x,
      height: this.#pointer.y + POINTER_REACH - y,
    })
  }

  #touch(rectangle: Rectangle): void {
    for (const { view } of this.#guests.values()) view.touch(rectangle)
  }

  #stopped(error: unknown): void {
    if (!(error instanceof MalformedGraphics)) throw error
    this.#painter = undefined
    this.#options.post({ kind: 'stopped', reason: error.message })
  }

  /** Sends each guest the update that is due now, and schedules the others. */
  #flush(): void {
    const painter = this.#painter
    if (!painter) return
    const now = this.#options.now()
    let picture: Framebuffer | undefined
    let next = Number.POSITIVE_INFINITY
    for (const [guest, known] of this.#guests) {
      const due = known.lastUpdate + UPDATE_INTERVAL_MS
      if (now < due) {
        next = Math.min(next, due)
        continue
      }
      const bytes = known.view.update(painter.framebuffer, (rectangle) => {
        picture ??= painter.picture()
        return pixelsOf(picture, rectangle)
      })
      if (!bytes) continue
      known.lastUpdate = now
      const { width, height } = known.view.size
      this.#options.post({ kind: 'update', guest, bytes, width, height })
    }
    if (this.#isWaiting || next === Number.POSITIVE_INFINITY) return
    this.#isWaiting = true
    this.#options.after(next - now, () => {
      this.#isWaiting = false
      this.#flush()
    })
  }
}
