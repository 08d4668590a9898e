/** Converts a drawn desktop's colours to a viewer's pixel format. */
import type { PixelFormat } from '../codec/pixel-format.ts'
import { pixelOf } from '../codec/pixels.ts'

/** The colours of a viewer with a colour map: eight reds, eight greens, four blues. */
const MAPPED: Pick<PixelFormat, 'redMax' | 'greenMax' | 'blueMax' | 'redShift' | 'greenShift' | 'blueShift'> =
  {
    redMax: 7,
    greenMax: 7,
    blueMax: 3,
    redShift: 5,
    greenShift: 2,
    blueShift: 0,
  }

/** The colours of the indices 0 to 255, with 16 bits each. */
export const COLOUR_MAP: readonly { red: number; green: number; blue: number }[] = Array.from(
  { length: 256 },
  (_, place) => {
    const part = (shift: number, max: number) => Math.round((((place >> shift) & max) * 0xffff) / max)
    return { red: part(5, 7), green: part(2, 7), blue: part(0, 3) }
  },
)

export class Colours {
  /** The share of each colour part in a pixel. */
  readonly #red: Uint32Array
  readonly #green: Uint32Array
  readonly #blue: Uint32Array

  constructor(format: PixelFormat) {
    const parts = format.isTrueColour ? format : { ...format, ...MAPPED }
    const table = (pixel: (part: number) => number) =>
      Uint32Array.from({ length: 256 }, (_, part) => pixel(part))
    this.#red = table((part) => pixelOf(parts, part, 0, 0))
    this.#green = table((part) => pixelOf(parts, 0, part, 0))
    this.#blue = table((part) => pixelOf(parts, 0, 0, part))
  }

  /** Converts 0xAABBGGRR to a pixel of the format. */
  of(colour: number): number {
    return (
      this.#red[colour & 0xff]! | this.#green[(colour >>> 8) & 0xff]! | this.#blue[(colour >>> 16) & 0xff]!
    )
  }
}
