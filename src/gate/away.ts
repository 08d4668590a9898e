/** The gate's answers while the database is away. */
import { StoreUnavailableError } from '../store/engine/errors.ts'
import type { Reach } from '../store/store.ts'

/** For users. */
export const UNAVAILABLE = 'the bastion cannot reach its database, try again in a moment'

/** Returns what `work` does, or `refusal` while the database is away, or if it goes away meanwhile. */
export async function whileThere<T>(
  reach: Pick<Reach, 'away'>,
  work: () => Promise<T>,
  refusal: () => T,
): Promise<T> {
  if (reach.away) return refusal()
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreUnavailableError) return refusal()
    throw error
  }
}
