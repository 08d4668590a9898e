/** Attributes of the emulator's cells as a Select Graphic Rendition sequence (ECMA-48 8.3.117). */
import type { IBufferCell } from '@xterm/headless'

/** Attributes common to cells and to the emulator's current state. */
export type Attributes = Pick<
  IBufferCell,
  | 'getFgColor'
  | 'getBgColor'
  | 'isFgRGB'
  | 'isBgRGB'
  | 'isFgPalette'
  | 'isBgPalette'
  | 'isBold'
  | 'isDim'
  | 'isItalic'
  | 'isUnderline'
  | 'isBlink'
  | 'isInverse'
  | 'isInvisible'
  | 'isStrikethrough'
  | 'isOverline'
>

/** Returns the sequence that sets these attributes, whatever was set before. */
export function sgrOf(attributes: Attributes): string {
  const codes = [
    0,
    ...FLAGS.flatMap(([is, code]) => (is(attributes) ? [code] : [])),
    ...colour(
      30,
      attributes.isFgRGB() ? 'rgb' : attributes.isFgPalette() ? 'palette' : 'default',
      attributes.getFgColor(),
    ),
    ...colour(
      40,
      attributes.isBgRGB() ? 'rgb' : attributes.isBgPalette() ? 'palette' : 'default',
      attributes.getBgColor(),
    ),
  ]
  return codes.length === 1 ? '\x1b[m' : `\x1b[${codes.join(';')}m`
}

/** Returns the sequence for an erased cell: it has a background, and no other visible attribute. */
export function backgroundOf(cell: Pick<Attributes, 'isBgRGB' | 'isBgPalette' | 'getBgColor'>): string {
  const kind = cell.isBgRGB() ? 'rgb' : cell.isBgPalette() ? 'palette' : 'default'
  return `\x1b[${[0, ...colour(40, kind, cell.getBgColor())].join(';')}m`
}

const FLAGS: readonly [(attributes: Attributes) => unknown, number][] = [
  [(attributes) => attributes.isBold(), 1],
  [(attributes) => attributes.isDim(), 2],
  [(attributes) => attributes.isItalic(), 3],
  [(attributes) => attributes.isUnderline(), 4],
  [(attributes) => attributes.isBlink(), 5],
  [(attributes) => attributes.isInverse(), 7],
  [(attributes) => attributes.isInvisible(), 8],
  [(attributes) => attributes.isStrikethrough(), 9],
  [(attributes) => attributes.isOverline(), 53],
]

/** `base` is 30 for the text, 40 for the background. */
function colour(base: number, kind: 'rgb' | 'palette' | 'default', value: number): number[] {
  if (kind === 'rgb') return [base + 8, 2, (value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff]
  if (kind === 'default') return []
  if (value < 8) return [base + value]
  return value < 16 ? [base + 60 + value - 8] : [base + 8, 5, value]
}
