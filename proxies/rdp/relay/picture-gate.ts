/**
 * Opens when the recording has the picture that the user acts on: input is held until the target has drawn
 * its whole desktop, and again after the target was held up, until it has redrawn everything. Also asks the
 * target to redraw the bitmaps that were skipped for a busy client.
 */
import { Damage } from '../../desktop/screens/damage.ts'
import type { Rectangle } from '../../desktop/screens/scene.ts'
import { eachArea } from '../codec/picture-heads.ts'
import { UPDATE, type Update } from '../codec/updates.ts'

/** Milliseconds for a target to complete a picture: some targets leave out black areas. */
export const SETTLE_MS = 3_000
/** Milliseconds after the client's confirmation until an incomplete desktop is requested again. */
export const ASK_MS = 1_000
/** Least milliseconds between requests for skipped areas. */
export const CATCH_UP_MS = 200
/** Missing pieces of a desktop; with more, the pieces are no longer tracked. */
const MAX_PIECES = 256

export interface PictureGateOptions {
  /** Asks the target to redraw this area. */
  refresh: (area: Rectangle) => void
  /** The client lags behind. */
  isLate: () => boolean
  /** Input is allowed now. */
  onOpen: () => void
}

export class PictureGate {
  readonly #options: PictureGateOptions
  #desktop: Rectangle | undefined
  #isOpen = false
  /** Area not drawn yet. */
  readonly #owed = new Damage()
  /** Ends the wait for the rest of the picture. */
  #settling: NodeJS.Timeout | undefined
  #asking: NodeJS.Timeout | undefined
  /** Area skipped for the client. */
  #skipped: Rectangle | undefined
  #catchingUp: NodeJS.Timeout | undefined

  constructor(options: PictureGateOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** The target offers this desktop. xrdp draws at once, other targets after the client's confirmation. */
  begin({ width, height }: { width: number; height: number }): void {
    this.close()
    this.#desktop = { left: 0, top: 0, width, height }
    this.#owed.add(this.#desktop)
  }

  /** The client has confirmed the desktop. */
  confirmed(): void {
    clearTimeout(this.#asking)
    this.#asking = setTimeout(() => {
      if (this.#desktop && !this.#isOpen) this.#options.refresh(this.#desktop)
    }, ASK_MS)
  }

  /** The target was held up, and may have skipped updates. */
  again(): void {
    if (!this.#desktop || !this.#isOpen) return
    this.#isOpen = false
    this.#owed.add(this.#desktop)
    this.#settle()
    this.#options.refresh(this.#desktop)
  }

  /** The target has drawn; `isSkipped`: the client does not get the update. */
  drawn(update: Update, isSkipped: boolean): void {
    if (update.code !== UPDATE.bitmap || !this.#desktop || (this.#isOpen && !isSkipped)) return
    eachArea(update, (left, top, width, height) => {
      const area = { left, top, width, height }
      if (!this.#isOpen) this.#fill(area)
      if (isSkipped) this.#skip(area)
    })
  }

  /** Forgets the desktop. */
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
