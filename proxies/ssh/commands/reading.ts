/**
 * Reads a line of input from the screen. The screen counts, not the keys: so a recalled, completed or edited
 * line is read correctly. The end of the prompt is known from the line's first key; a prompt that was printed
 * anew is recognised by its text. If neither applies, there is no line.
 */

import type { Span } from './grid.ts'
import { isPrompt } from './prompt.ts'
import type { Screen } from './screen.ts'
import type { TypedLine } from './typed-line.ts'

export interface Reading {
  text: string
  prompt: string
  /** Number of assumptions made. */
  doubts: number
}

/**
 * `prompts`: prompts of earlier lines. `upToCursor` excludes suggestions, shown behind the cursor but not
 * typed.
 */
export function readLine(
  screen: Screen,
  line: TypedLine,
  prompts: Iterable<string>,
  upToCursor = false,
): Reading | undefined {
  const { mark } = line
  const here = screen.span(screen.row)
  const shown = screen.text(here, upToCursor ? screen.cursor : undefined)
  if (mark.prompt !== '') {
    const isHere = shown.startsWith(mark.prompt)
    // Only an edited line, or one with pasted line ends, can span several lines.
    const mayBeBlock = line.hasNewlines || (!isHere && line.text === undefined)
    if (mayBeBlock && !line.isAhead) {
      const block = blockFrom(screen, line, here)
      if (block?.startsWith(mark.prompt)) return reading(block, mark.prompt, 1)
    }
    if (isHere) return reading(withoutRight(shown, mark.right), mark.prompt, 0)
  }
  for (const prompt of prompts) {
    if (shown.startsWith(prompt)) return reading(shown, prompt, 1)
  }
  const { text = '' } = line
  const end = shown.trimEnd()
  if (text === '' || !end.endsWith(text)) return undefined
  const before = end.slice(0, -text.length)
  if (isPrompt(before)) return { text, prompt: before, doubts: 1 }
  const isWhole = before === '' && mark.prompt === '' && mark.row === screen.gone + here.first
  return isWhole ? { text, prompt: '', doubts: 0 } : undefined
}

function reading(shown: string, prompt: string, doubts: number): Reading {
  return { text: shown.slice(prompt.length).trimEnd(), prompt, doubts }
}

function withoutRight(shown: string, right: string): string {
  const end = shown.trimEnd()
  return right !== '' && end.endsWith(right) ? end.slice(0, -right.length) : shown
}

/**
 * Returns the lines from the prompt's to the cursor's, joined by line feeds. If the line is known to have
 * line ends, the lines below follow up to the first gap.
 */
function blockFrom(screen: Screen, { mark, hasNewlines }: TypedLine, here: Span): string | undefined {
  const first = mark.row - screen.gone
  if (first < 0 || first > here.last) return undefined
  const lines: string[] = []
  for (let row = first; row < screen.rows; ) {
    const span = screen.span(row)
    if (span.first > here.last && (!hasNewlines || screen.isBlank(span.first))) break
    const text = screen.text(span)
    // The prompt at the beginning is compared including its spaces.
    lines.push(row === first ? withoutRight(text, mark.right) : text.trimEnd())
    row = span.last + 1
  }
  const [start = '', ...rest] = lines
  const prompt = start.slice(0, mark.prompt.length)
  return [prompt + start.slice(prompt.length).trimEnd(), ...rest].join('\n')
}
