/** A desktop drawn by RDP's updates: bitmaps, palettes and pointers. */
import type { Cursor } from '../cursor.ts'
import { type Decoding, Easel } from '../decoding.ts'
import { Framebuffer } from '../framebuffer.ts'
import { MalformedGraphics } from '../malformed.ts'
import type { Size } from '../rectangle.ts'
import { paintBitmaps } from './bitmap.ts'
import { greyPalette, parsePalette } from './colours.ts'
import {
  type Picture,
  PointerCache,
  parseColourPointer,
  parseLargePointer,
  parseNewPointer,
} from './pointer.ts'
import { UpdateReader } from './reader.ts'

/** Codes of the fast path (MS-RDPBCGR 2.2.9.1.2.1). */
const UPDATE = {
  orders: 0,
  bitmap: 1,
  palette: 2,
  synchronize: 3,
  pointerHidden: 5,
  pointerDefault: 6,
  pointerPosition: 8,
  pointerColour: 9,
  pointerCached: 10,
  pointerNew: 11,
  pointerLarge: 12,
} as const

/** The pointer: hidden, the system's own, or a picture. */
export type Pointer = 'hidden' | 'default' | Cursor

/** State beside the pixels that the next updates depend on. */
export interface DesktopState {
  palette: Uint32Array
  pointer: Pointer
  cached: Picture[]
  /** Position set by the target for the pointer. */
  position: { x: number; y: number } | undefined
}

export class RdpDesktop {
  readonly framebuffer: Framebuffer
  readonly #easel: Easel
  #palette = greyPalette()
  readonly #cache = new PointerCache()
  #pointer: Pointer = 'default'
  #position: { x: number; y: number } | undefined

  /** Starts black. Throws MalformedGraphics if the size is too large. */
  constructor(size: Size) {
    this.framebuffer = new Framebuffer(size)
    this.#easel = new Easel(this.framebuffer)
  }

  get state(): DesktopState {
    return {
      palette: this.#palette,
      pointer: this.#pointer,
      cached: this.#cache.entries(),
      position: this.#position,
    }
  }

  /** Continues from a state. Throws MalformedGraphics if the state is invalid. */
  restore({ palette, pointer, cached, position }: DesktopState): void {
    this.#palette = palette
    this.#pointer = pointer
    this.#position = position
    for (const picture of cached) this.#cache.set(picture)
  }

  get pointer(): Pointer {
    return this.#pointer
  }

  /**
   * The last position set by the target for the pointer. Undefined if the target has left it to the client.
   */
  get position(): { x: number; y: number } | undefined {
    return this.#position
  }

  /** Number of pixels painted so far, including repainted ones. */
  get painted(): number {
    return this.#easel.painted
  }

  /**
   * Draws an update: its code and data as on the fast path (bitmaps and palettes begin with their type).
   * Yields PAUSE after about ten milliseconds. Throws MalformedGraphics: the part before the fault is drawn,
   * and the next update is unaffected, since each is complete in itself.
   */
  *update(code: number, data: Uint8Array): Decoding {
    switch (code) {
      case UPDATE.bitmap:
        yield* paintBitmaps(data, this.#easel, this.#palette)
        return
      case UPDATE.palette:
        this.#palette = parsePalette(new UpdateReader(data, 'palette'))
        return
      case UPDATE.orders:
      case UPDATE.synchronize:
        // Orders were not offered: the few that still come paint nothing (xrdp sets up a cache at 8 bits).
        return
      default:
        this.#showPointer(code, data)
    }
  }

  #showPointer(code: number, data: Uint8Array): void {
    const reader = new UpdateReader(data, 'pointer')
    switch (code) {
      case UPDATE.pointerHidden:
        this.#pointer = 'hidden'
        return
      case UPDATE.pointerDefault:
        this.#pointer = 'default'
        return
      case UPDATE.pointerPosition:
        this.#position = { x: reader.u16(), y: reader.u16() }
        return
      case UPDATE.pointerCached:
        this.#pointer = this.#cache.get(reader.u16())
        return
      case UPDATE.pointerColour:
        this.#keep(parseColourPointer(data, this.#palette))
        return
      case UPDATE.pointerNew:
        this.#keep(parseNewPointer(data, this.#palette))
        return
      case UPDATE.pointerLarge:
        this.#keep(parseLargePointer(data, this.#palette))
        return
      default:
        throw new MalformedGraphics(`expected an update of RDP that is drawn, got one of code ${code}`)
    }
  }

  #keep(picture: Picture): void {
    this.#cache.set(picture)
    this.#pointer = picture.cursor
  }
}
