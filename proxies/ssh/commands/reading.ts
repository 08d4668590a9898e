/**
 * Reads a line of input from the screen. What counts is what stands there, not what was typed: so a line that was
 * recalled, completed or edited is read as it is. Where the prompt ends is known from the first key of the line; a
 * prompt that was printed anew since is recognised by its text. When nothing of this holds there is no line.
 */

import type { Span } from './grid.ts'
import { isPrompt } from './prompt.ts'
import type { Screen } from './screen.ts'
import type { TypedLine } from './typed-line.ts'

export interface Reading {
  text: string
  prompt: string
  /** How many things had to be assumed. */
  doubts: number
}

/**
 * `prompts`: those of earlier lines. `upToCursor`: what stands behind the cursor does not belong to the line, for it
 * was not typed (suggestions).
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
    // Only an edited line, or one with line ends of its own, can take several lines.
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
 * The lines from the one in which the prompt stood to the cursor's, joined by line feeds. Those below that follow
 * without a gap belong to it when it is known to have line ends.
 */
function blockFrom(screen: Screen, { mark, hasNewlines }: TypedLine, here: Span): string | undefined {
  const first = mark.row - screen.gone
  if (first < 0 || first > here.last) return undefined
  const lines: string[] = []
  for (let row = first; row < screen.rows; ) {
    const span = screen.span(row)
    if (span.first > here.last && (!hasNewlines || screen.isBlank(span.first))) break
    const text = screen.text(span)
    // The prompt at the beginning is compared with its spaces.
    lines.push(row === first ? withoutRight(text, mark.right) : text.trimEnd())
    row = span.last + 1
  }
  const [start = '', ...rest] = lines
  const prompt = start.slice(0, mark.prompt.length)
  return [prompt + start.slice(prompt.length).trimEnd(), ...rest].join('\n')
}
