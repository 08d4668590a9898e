/** The bastion's own words on a display. */
import type { Picture } from '../peers/screen.ts'
import { readText } from '../proxies/desktop/screens/reading.ts'

/** Returns the words of a picture, as the bastion's font has them at this scale. */
export function textOf({ width, height, rgb }: Picture, scale = 1): string {
  const pixels = new Uint8Array(width * height)
  const palette = new Map<number, number>()
  for (let at = 0; at < pixels.length; at++) {
    const colour = rgb.readUIntBE(at * 3, 3)
    if (!palette.has(colour)) palette.set(colour, Math.min(255, palette.size))
    pixels[at] = palette.get(colour)!
  }
  return readText({ width, height, pixels }, scale)
    .map(({ text }) => text)
    .join(' ')
}
