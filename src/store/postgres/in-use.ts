/**
 * The note in a store that its data are elsewhere (engine/state.ts), for processes that had it open before: while their
 * network was gone, another one may have copied it.
 */
import type pg from 'pg'
import { StoreUnavailableError } from '../engine/errors.ts'
import { requireInUse, STATE } from '../engine/state.ts'

const NO_TABLE = '42P01'

/**
 * Checks a new connection: no copy has moved its store, or makes it.
 * @throws StoreUnavailableError with `isElsewhere`
 */
export async function requireUsed(client: pg.ClientBase): Promise<void> {
  const value = await stateOf(client)
  try {
    requireInUse(value)
  } catch (error) {
    throw new StoreUnavailableError((error as Error).message, { isElsewhere: true })
  }
}

async function stateOf(client: pg.ClientBase): Promise<Uint8Array | undefined> {
  try {
    const text = 'select value from settings where name = $1'
    return (await client.query<{ value: Uint8Array }>(text, [STATE])).rows[0]?.value
  } catch (error) {
    // A database in which no store is yet.
    if ((error as { code?: unknown }).code === NO_TABLE) return undefined
    throw error
  }
}
