/** What a graphic channel shows: its frames, drawn by its painter. */
import type { Buffer } from 'node:buffer'
import type { Frame } from '../frames.ts'
import type { Framebuffer } from '../graphics/framebuffer.ts'
import { drawNote } from '../graphics/note.ts'
import { framebufferOf, restorePainter } from '../graphics/open.ts'
import type { Painter } from '../graphics/painter.ts'
import type { Block, PictureKeyframe } from '../index/directory.ts'
import { bandRows, type PictureState } from '../index/pictures.ts'
import type { Shown } from './screen.ts'

export class Desktop implements Shown {
  readonly #painter: Painter

  constructor(painter: Painter) {
    this.#painter = painter
  }

  /** As a keyframe shows it; undefined when that is damaged. `read` gives the index's blocks. */
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

  /** What is shown, with the pointer, and a note where there is nothing newer to show; until the next frame. */
  get picture(): Framebuffer {
    const { stopped } = this.#painter
    const picture = this.#painter.picture()
    if (stopped === undefined) return picture
    const noted = picture.clone()
    drawNote(noted, `the picture stops here: ${stopped}`)
    return noted
  }

  apply(frame: Frame): undefined {
    this.#painter.apply(frame)
  }

  async settle(): Promise<void> {}

  dispose(): void {}
}
