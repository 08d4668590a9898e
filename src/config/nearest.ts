/** Known words that are near to a mistyped one. */
import { closest, distance } from 'fastest-levenshtein'

/** Returns the known word that is nearest, or undefined if none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (known.length === 0) return undefined
  const near = closest(word, known)
  return distance(word, near) * 2 <= Math.max(word.length, near.length) ? near : undefined
}
