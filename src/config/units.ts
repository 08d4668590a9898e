/** Durations and sizes as written in the configuration: a whole number and its unit, without a space. */

const DURATION_UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const SIZE_UNITS: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}

export const DURATION_PATTERN = '^[0-9]{1,9}[smhd]$'
export const SIZE_PATTERN = '^[0-9]{1,9}(B|KiB|MiB|GiB|TiB)$'

function parse(text: string, pattern: string, units: Readonly<Record<string, number>>, what: string): number {
  const unit = text.replace(/^[0-9]+/, '')
  const factor = new RegExp(pattern).test(text) ? units[unit] : undefined
  if (factor === undefined) throw new RangeError(`expected ${what}, got ${JSON.stringify(text)}`)
  return Number.parseInt(text, 10) * factor
}

/** Parses `90s 15m 8h 30d` to milliseconds. Throws RangeError for any other text. */
export function parseDuration(text: string): number {
  return parse(text, DURATION_PATTERN, DURATION_UNITS, 'a duration such as 90s, 15m, 8h or 30d')
}

/** Parses `512B 64KiB 1GiB` to bytes. Throws RangeError for any other text. */
export function parseSize(text: string): number {
  return parse(text, SIZE_PATTERN, SIZE_UNITS, 'a size such as 64KiB, 100MiB or 1GiB')
}
