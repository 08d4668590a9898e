/** Fits text into lines of so many characters. */
import { printable } from '../../wording/line-input.ts'

const ELLIPSIS = '…'

/** Returns printable text on one line of at most so many characters, with "…" in place of a cut end. */
export function cut(text: string, columns: number): string {
  // Cut by code units first: a name of megabytes is not split into characters for its first ones.
  const characters = [...printable(text.slice(0, 2 * Math.max(0, columns) + 2))]
  if (characters.length <= columns) return characters.join('')
  return columns < 1 ? '' : `${characters.slice(0, columns - 1).join('')}${ELLIPSIS}`
}

/** Breaks text between words, inside words longer than a line, and at line feeds. */
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
