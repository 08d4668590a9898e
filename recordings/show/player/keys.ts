/** Parses keys from the bytes of a terminal in raw mode. */

export type Key =
  | 'left'
  | 'right'
  | 'up'
  | 'down'
  | 'enter'
  | 'erase'
  | 'escape'
  | 'interrupt'
  | (string & {})

const SEQUENCES: ReadonlyMap<string, Key> = new Map([
  ['A', 'up'],
  ['B', 'down'],
  ['C', 'right'],
  ['D', 'left'],
])
const CONTROLS: ReadonlyMap<string, Key> = new Map([
  ['\r', 'enter'],
  ['\n', 'enter'],
  ['\x7f', 'erase'],
  ['\b', 'erase'],
  ['\x03', 'interrupt'],
  ['\x04', 'interrupt'],
  ['\t', 'tab'],
])

/**
 * Parses a piece of input, which holds whole sequences: terminals send a key at once. Other sequences are
 * left out.
 */
export function keysOf(text: string): Key[] {
  const keys: Key[] = []
  for (const [match, , final] of text.matchAll(/\x1b([[O])[0-9;]*([A-Za-z~])|\x1b|./gsu)) {
    if (final !== undefined) {
      const key = SEQUENCES.get(final)
      if (key) keys.push(key)
    } else if (match === '\x1b') keys.push('escape')
    else if (CONTROLS.has(match)) keys.push(CONTROLS.get(match)!)
    else if (match >= ' ') keys.push(match)
  }
  return keys
}
