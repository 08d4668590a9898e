/** A graphic channel's desktop, drawn by its painter from the channel's frames. */
import type { Buffer } from 'node:buffer'
import { FRAME, type Frame } from '../../container/frames.ts'
import type { Framebuffer } from '../../decode/graphics/framebuffer.ts'
import { drawNote } from '../../decode/graphics/note.ts'
import type { Painter } from '../../decode/graphics/painter.ts'
import { framebufferOf, restorePainter } from '../../decode/open-graphics.ts'
import type { Shown } from '../../decode/terminal/screen.ts'
import { Allowance } from '../index/allowance.ts'
import type { Block, PictureKeyframe } from '../index/directory.ts'
import { bandRows, type PictureState } from '../index/pictures.ts'

export class Desktop implements Shown {
  readonly #painter: Painter
  readonly #allowance: Allowance
  #isTooMuch = false

  /** Stops drawing when `allowance` is used up: a few bytes may request many pixels. */
  constructor(painter: Painter, allowance: Allowance = Allowance.ofDesktop()) {
    this.#painter = painter
    this.#allowance = allowance
  }

  /**
   * Restores the desktop of a keyframe. Returns undefined if the keyframe is damaged. `read` returns the
   * index's blocks.
   */
  static async restore(
    kind: string,
    { block }: PictureKeyframe,
    read: (block: Block) => Promise<Buffer | undefined>,
  ): Promise<Desktop | undefined> {
    const plain = await read(block)
    if (!plain) return undefined
    const { width, height, bands, painter: state } = JSON.parse(plain.toString()) as PictureState
    const framebuffer = framebufferOf({ width, height })
    if (!framebuffer) return undefined
    const rows = bandRows(width)
    for (const [at, band] of bands.entries()) {
      const pixels = await read(band)
      if (!pixels) return undefined
      framebuffer.bytes.set(pixels, at * rows * width * 4)
    }
    const painter = restorePainter(kind, state, framebuffer)
    return painter && new Desktop(painter)
  }

  /** The picture with the pointer, and with a note if drawing has stopped. Valid until the next frame. */
  get picture(): Framebuffer {
    const { stopped } = this
    const picture = this.#painter.picture()
    if (stopped === undefined) return picture
    const noted = picture.clone()
    drawNote(noted, `the picture stops here: ${stopped}`)
    return noted
  }

  /** Reason why drawing has stopped. */
  get stopped(): string | undefined {
    return this.#isTooMuch ? 'what follows takes more time to draw than there is' : this.#painter.stopped
  }

  apply(frame: Frame): Promise<void> | undefined {
    if (frame.type === FRAME.graphics) return this.#draw(frame.payload)
    this.#painter.apply(frame)
    return undefined
  }

  async #draw(graphics: Uint8Array): Promise<void> {
    const painter = this.#painter
    this.#allowance.earn(graphics.length)
    let rest = graphics
    while (!this.#isTooMuch && (rest.length > 0 || painter.isPaused)) {
      if (this.#allowance.isSpent) this.#isTooMuch = true
      else rest = rest.subarray(await this.#allowance.spend(async () => painter.paint(rest)))
    }
  }

  async settle(): Promise<void> {}

  destroy(): void {}
}
