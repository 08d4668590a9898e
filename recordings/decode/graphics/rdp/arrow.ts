/** The system's own pointer, which a target selects and does not draw. */
import { ARROW as ROWS } from '../../../../src/drawing/arrow.ts'
import type { Cursor } from '../cursor.ts'
import { rgb } from '../framebuffer.ts'

const COLOURS: Readonly<Record<string, number>> = { '#': rgb(0, 0, 0), '.': rgb(0xff, 0xff, 0xff) }

export const ARROW: Cursor = {
  width: ROWS[0]!.length,
  height: ROWS.length,
  hotX: 0,
  hotY: 0,
  pixels: Uint32Array.from([...ROWS.join('')], (character) => COLOURS[character] ?? 0),
}
