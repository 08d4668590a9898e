/**
 * A store that can be replaced under its users: plans made on the database are carried out in a transaction.
 */
import type { Store } from '../../store/store.ts'

export interface LateStore {
  store: Store
  /** Uses `store` from now on. */
  be(store: Store): void
}

export function lateStore(first: Store): LateStore {
  let now = first
  const parts = Object.keys(first) as (keyof Store)[]
  const late = Object.defineProperties(
    {},
    Object.fromEntries(parts.map((part) => [part, { get: () => now[part], enumerable: true }])),
  )
  return {
    store: late as Store,
    be(store) {
      now = store
    },
  }
}
