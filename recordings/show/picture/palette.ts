/** The 256 colours of a terminal (xterm's table), and the nearest of them to any colour. */

/** Black to white, then the bright ones. */
const BASE = [
  0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x1e90ff, 0xcd00cd, 0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000,
  0x00ff00, 0xffff00, 0x5c9cff, 0xff00ff, 0x00ffff, 0xffffff,
]
const CUBE = [0, 95, 135, 175, 215, 255]
/** Index of the cube's first colour, and of the first grey. */
const CUBE_AT = 16
const GREYS_AT = 232

export const FOREGROUND = 7
export const BACKGROUND = 0

/** Three bytes for each colour. */
export const PALETTE: Uint8Array = Uint8Array.from({ length: 768 }, (_, at) => {
  const colour = Math.floor(at / 3)
  const part = at % 3
  if (colour < CUBE_AT) return (BASE[colour]! >> (16 - 8 * part)) & 0xff
  if (colour >= GREYS_AT) return 8 + 10 * (colour - GREYS_AT)
  return CUBE[Math.floor((colour - CUBE_AT) / [36, 6, 1][part]!) % 6]!
})

/** `rgb`: 0xRRGGBB. */
export function nearest(rgb: number): number {
  const parts = [(rgb >> 16) & 0xff, (rgb >> 8) & 0xff, rgb & 0xff]
  const [red, green, blue] = parts.map((value) =>
    value < 48 ? 0 : value < 115 ? 1 : Math.floor((value - 35) / 40),
  )
  return CUBE_AT + 36 * red! + 6 * green! + blue!
}
