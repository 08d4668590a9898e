/**
 * Whether the recording has the picture of the target that somebody acts on: nothing that is typed or clicked passes before
 * all of a desktop was drawn, nor after the target was held up until it has drawn all of it again. And what the client did
 * not get of it while it had enough to take: the target draws that again, too.
 */
import { Damage } from '../../desktop/screens/damage.ts'
import type { Rectangle } from '../../desktop/screens/scene.ts'
import { eachArea } from '../codec/picture-heads.ts'
import { UPDATE, type Update } from '../codec/updates.ts'

/** How long a target may take for the rest of a picture: some leave out what is black. */
export const SETTLE_MS = 3_000
/** A target that has not drawn all of a desktop by then, from the client's agreement on, is asked to. */
export const ASK_MS = 1_000
/** What was left out is asked for no more often. */
export const CATCH_UP_MS = 200
/** Pieces of a desktop that are not drawn: of more it is not followed which those are. */
const MAX_PIECES = 256

export interface PictureGateOptions {
  /** The target is to draw this part of its desktop again. */
  refresh: (area: Rectangle) => void
  /** The client does not have what it was sent. */
  isLate: () => boolean
  /** Somebody may act. */
  onOpen: () => void
}

export class PictureGate {
  readonly #options: PictureGateOptions
  #desktop: Rectangle | undefined
  #isOpen = false
  /** What is not drawn yet. */
  readonly #owed = new Damage()
  /** Until the rest of the picture is not waited for any longer. */
  #settling: NodeJS.Timeout | undefined
  #asking: NodeJS.Timeout | undefined
  /** The client does not have this. */
  #skipped: Rectangle | undefined
  #catchingUp: NodeJS.Timeout | undefined

  constructor(options: PictureGateOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** The target offers this desktop. xrdp draws on it from then on, others once the client has agreed to it. */
  begin({ width, height }: { width: number; height: number }): void {
    this.close()
    this.#desktop = { left: 0, top: 0, width, height }
    this.#owed.add(this.#desktop)
  }

  /** The client has agreed to the desktop. */
  confirmed(): void {
    clearTimeout(this.#asking)
    this.#asking = setTimeout(() => {
      if (this.#desktop && !this.#isOpen) this.#options.refresh(this.#desktop)
    }, ASK_MS)
  }

  /** The target was held up, and may have left out what it would have drawn. */
  again(): void {
    if (!this.#desktop || !this.#isOpen) return
    this.#isOpen = false
    this.#owed.add(this.#desktop)
    this.#settle()
    this.#options.refresh(this.#desktop)
  }

  /** The target has drawn; `isSkipped`: the client does not get it. */
  drawn(update: Update, isSkipped: boolean): void {
    if (update.code !== UPDATE.bitmap || !this.#desktop || (this.#isOpen && !isSkipped)) return
    eachArea(update, (left, top, width, height) => {
      const area = { left, top, width, height }
      if (!this.#isOpen) this.#fill(area)
      if (isSkipped) this.#skip(area)
    })
  }

  /** There is no desktop any more. */
  close(): void {
    this.#desktop = undefined
    this.#isOpen = false
    this.#owed.clear()
    this.#skipped = undefined
    clearTimeout(this.#settling)
    this.#settling = undefined
    clearTimeout(this.#catchingUp)
    this.#catchingUp = undefined
    clearTimeout(this.#asking)
  }

  #fill(area: Rectangle): void {
    this.#settle()
    if (MAX_PIECES < this.#owed.parts) return
    this.#owed.take(area)
    if (this.#owed.parts === 0) this.#open()
  }

  #settle(): void {
    this.#settling ??= setTimeout(() => this.#open(), SETTLE_MS)
  }

  #open(): void {
    clearTimeout(this.#settling)
    this.#settling = undefined
    this.#owed.clear()
    this.#isOpen = true
    this.#options.onOpen()
  }

  #skip({ left, top, width, height }: Rectangle): void {
    const { width: right, height: bottom } = this.#desktop!
    const had = this.#skipped
    const from = { x: Math.min(left, had?.left ?? left), y: Math.min(top, had?.top ?? top) }
    const to = {
      x: Math.min(right, Math.max(left + width, had ? had.left + had.width : 0)),
      y: Math.min(bottom, Math.max(top + height, had ? had.top + had.height : 0)),
    }
    if (to.x <= from.x || to.y <= from.y) return
    this.#skipped = { left: from.x, top: from.y, width: to.x - from.x, height: to.y - from.y }
    this.#catchingUp ??= setTimeout(() => this.#catchUp(), CATCH_UP_MS)
  }

  #catchUp(): void {
    const { isLate, refresh } = this.#options
    const skipped = this.#skipped
    this.#catchingUp = undefined
    if (!skipped) return
    if (isLate()) {
      this.#catchingUp = setTimeout(() => this.#catchUp(), CATCH_UP_MS)
      return
    }
    this.#skipped = undefined
    refresh(skipped)
  }
}
