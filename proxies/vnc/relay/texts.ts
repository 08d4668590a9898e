/** Texts in the titles of viewers' windows. */
import { wordsOf } from '../../wording/errors.ts'

/** Returns the target's name for its desktop, with the note that it is recorded. */
export function desktopName(name: string, isRecorded = true): string {
  return isRecorded ? `${wordsOf(name)} (recorded)` : wordsOf(name)
}
