/** Work on one connection to the primary, which is closed afterwards. */
import pg from 'pg'
import { type PostgresPlace, placeText } from '../../model/database.ts'
import { SchemaError, StoreClaimedError, StoreError } from '../engine/errors.ts'
import { clientConfig, endClient } from './connection.ts'
import { storeErrorOf } from './errors.ts'
import type { Primary } from './primary.ts'

/**
 * Connects to the primary for `work`; `isPatient`: without a limit of time for statements.
 * @throws StoreError that names the place
 */
export async function once<T>(
  place: PostgresPlace,
  primary: Primary,
  work: (client: pg.Client) => Promise<T>,
  options?: { isPatient?: boolean },
): Promise<T> {
  return await inWords(place, () => connected(place, primary, work, options))
}

async function connected<T>(
  place: PostgresPlace,
  primary: Primary,
  work: (client: pg.Client) => Promise<T>,
  { isPatient = false } = {},
): Promise<T> {
  if (primary.isOneOfSeveral) await primary.find()
  const client = new pg.Client(clientConfig(place, primary.current, { isPatient }))
  client.on('error', () => undefined)
  try {
    await client.connect()
    await primary.require(client)
    return await work(client)
  } finally {
    await endClient(client)
  }
}

/** Adds the place to errors, which people read when they start the broker. */
export async function inWords<T>(place: PostgresPlace, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    // It names the place by itself.
    if (error instanceof StoreClaimedError) throw error
    const { message } = storeErrorOf(error)
    const words = `${placeText({ postgres: place })}: ${message}`
    throw error instanceof SchemaError ? new SchemaError(words) : new StoreError(words)
  }
}
