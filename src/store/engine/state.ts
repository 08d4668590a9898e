/**
 * The note in a store that no broker may use it: it is a copy that is not finished, or its data are elsewhere by now
 * (store/copy). One row of the settings, which is written in the transaction of what it reports and is never copied.
 */
import { StoreError } from './errors.ts'

/** Name of the setting. */
export const STATE = 'store.state'

export interface UnfinishedCopy {
  state: 'copying'
  /** Names this copy, in both stores. */
  id: string
  /** The source in words, without secrets. */
  from: string
  /** The source's content when the copy began. */
  head: string
  /** The table that is being copied, and the key of its last row here, as text. Absent before the first. */
  at?: { table: string; after: string }
  /** The difference that was found when the copy was compared. */
  fault?: string
}

export interface MovedStore {
  state: 'moved'
  /** Names the copy. */
  id: string
  /** The destination in words, without secrets. */
  to: string
  /** Milliseconds since the epoch. */
  time: number
}

export type StoreState = UnfinishedCopy | MovedStore

export function encodeState(state: StoreState): Uint8Array {
  return new Uint8Array(Buffer.from(JSON.stringify(state)))
}

/** @throws StoreError if the value is no such note */
export function decodeState(value: Uint8Array): StoreState {
  try {
    const { state, ...rest } = JSON.parse(Buffer.from(value).toString('utf8')) as StoreState
    if (state === 'copying' || state === 'moved') return { state, ...rest } as StoreState
  } catch {
    // Reported below.
  }
  throw new StoreError(
    `it has a note of a copy (${STATE}) that this program cannot read: name another database`,
  )
}

/** `value`: the setting. @throws StoreError with the reason why no broker may use the store */
export function requireInUse(value: Uint8Array | undefined): void {
  if (!value) return
  const state = decodeState(value)
  if (state.state === 'moved') throw new StoreError(movedText(state))
  const { from, fault } = state
  throw new StoreError(
    fault === undefined
      ? `it is a copy of ${from} that is not finished: run the same sallyport store copy again, which goes on where it stood`
      : `it is a copy of ${from} that differs from it (${fault}): run sallyport store copy again, which begins anew`,
  )
}

export function movedText({ to, time }: MovedStore): string {
  return (
    `its data were copied to ${to} at ${new Date(time).toISOString()}, and are used there: correct database.url. ` +
    'To use it again as it was then: sallyport store reopen'
  )
}
