/** Formats and parses a player's times. */

/** Formats microseconds as `1:02:03`, or `02:03` below an hour. */
export function showTime(microseconds: number): string {
  const seconds = Math.floor(microseconds / 1e6)
  const two = (value: number) => String(value).padStart(2, '0')
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
  return seconds < 3600 ? rest : `${Math.floor(seconds / 3600)}:${rest}`
}

/** Parses `90`, `1:30`, `1:02:03.5` to microseconds. Returns undefined if the text is not a time. */
export function readTime(text: string): number | undefined {
  if (!/^\d{1,6}(:\d{1,2}){0,2}(\.\d{1,6})?$/.test(text)) return undefined
  return text.split(':').reduce((sum, part) => sum * 60 + Number(part), 0) * 1e6
}
