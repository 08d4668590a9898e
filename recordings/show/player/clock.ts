/** Times as a player shows and takes them. */

/** `1:02:03`, or `02:03` below an hour; of microseconds. */
export function showTime(microseconds: number): string {
  const seconds = Math.floor(microseconds / 1e6)
  const two = (value: number) => String(value).padStart(2, '0')
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
  return seconds < 3600 ? rest : `${Math.floor(seconds / 3600)}:${rest}`
}

/** Microseconds of `90`, `1:30`, `1:02:03.5`; undefined when it is no time. */
export function readTime(text: string): number | undefined {
  if (!/^\d{1,6}(:\d{1,2}){0,2}(\.\d{1,6})?$/.test(text)) return undefined
  return text.split(':').reduce((sum, part) => sum * 60 + Number(part), 0) * 1e6
}
