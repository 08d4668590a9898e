/** Text in lines of so many characters. */
import { printable } from '../../wording/line-input.ts'

const ELLIPSIS = '…'

/** Printable, on one line, and no longer than that; what is missing at its end shows as "…". */
export function cut(text: string, columns: number): string {
  // Code units are enough to begin with: a name of megabytes is not taken apart for its first characters.
  const characters = [...printable(text.slice(0, 2 * Math.max(0, columns) + 2))]
  if (characters.length <= columns) return characters.join('')
  return columns < 1 ? '' : `${characters.slice(0, columns - 1).join('')}${ELLIPSIS}`
}

/** Broken between words, in words that are longer than a line, and where the text has a line feed. */
export function wrapped(text: string, columns: number, maximum: number): string[] {
  const lines: string[] = []
  const width = Math.max(1, columns)
  for (const paragraph of text.slice(0, 2 * width * maximum).split(/\r?\n/)) {
    let line: string[] = []
    for (const word of paragraph.split(/\s+/).filter((part) => part !== '')) {
      let rest = [...printable(word)]
      if (line.length > 0 && line.length + 1 + rest.length > width) {
        lines.push(line.join(''))
        line = []
      }
      if (line.length > 0) line.push(' ')
      while (line.length + rest.length > width) {
        lines.push([...line, ...rest.slice(0, width - line.length)].join(''))
        rest = rest.slice(width - line.length)
        line = []
      }
      line.push(...rest)
    }
    lines.push(line.join(''))
  }
  if (lines.length <= maximum) return lines
  return [...lines.slice(0, Math.max(0, maximum - 1)), ELLIPSIS].slice(0, maximum)
}
