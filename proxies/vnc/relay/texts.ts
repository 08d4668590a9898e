/** What the bastion says in the titles of viewers' windows. */
import { wordsOf } from '../../wording/errors.ts'

/** The target's name for its desktop, and that this is recorded. */
export function desktopName(name: string, isRecorded = true): string {
  return isRecorded ? `${wordsOf(name)} (recorded)` : wordsOf(name)
}
