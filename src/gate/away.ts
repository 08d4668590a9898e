/** The gate's answers while the database is away, or its disk is full. */
import { isDiskFull, StoreUnavailableError } from '../store/engine/errors.ts'
import type { Reach } from '../store/store.ts'

/** For users. */
const UNAVAILABLE = 'the bastion cannot reach its database, try again in a moment'
/** For users: nothing is done that cannot be written down. */
const DISK_FULL = 'the disk of the database is full, tell an administrator'

/** Returns the error's words for users if it is about a full disk. */
export const wordsOfFullDisk = (error: unknown) => (isDiskFull(error) ? DISK_FULL : undefined)

/**
 * Returns what `work` does, or `refusal` with words for the user while the database is away, or if it goes away, or finds
 * its disk full, meanwhile.
 */
export async function whileThere<T>(
  reach: Pick<Reach, 'away'>,
  work: () => Promise<T>,
  refusal: (message: string) => T,
): Promise<T> {
  const { away } = reach
  if (away) return refusal(away.isFull ? DISK_FULL : UNAVAILABLE)
  try {
    return await work()
  } catch (error) {
    const full = wordsOfFullDisk(error)
    if (full !== undefined) return refusal(full)
    if (error instanceof StoreUnavailableError) return refusal(UNAVAILABLE)
    throw error
  }
}
