/** The few colours of the bastion's own screens: each of their pixels is an index into this table. */

const COLOURS = {
  backdrop: 0x22303c,
  bar: 0x14202a,
  barText: 0xf2f5f7,
  barMuted: 0x9fb0bd,
  panel: 0xf4f6f7,
  text: 0x16222b,
  muted: 0x55646f,
  line: 0xb9c3ca,
  field: 0xffffff,
  /** The focused element, and the selected line. */
  focus: 0x0b63a8,
  focusText: 0xffffff,
  button: 0xdde3e7,
  failure: 0xa61b1b,
  recording: 0xd02b2b,
} as const

export type ColourName = keyof typeof COLOURS

/** The index of each colour. */
export const COLOUR = Object.fromEntries(Object.keys(COLOURS).map((name, place) => [name, place])) as Record<
  ColourName,
  number
>

/** Three bytes per colour: red, green, blue. */
export const PALETTE: Uint8Array = Uint8Array.from(
  Object.values(COLOURS).flatMap((rgb) => [(rgb >> 16) & 0xff, (rgb >> 8) & 0xff, rgb & 0xff]),
)
