/** A store that can be exchanged under those who use it: what was planned on the database is done in a transaction. */
import type { Store } from '../../store/store.ts'

export interface LateStore {
  store: Store
  /** From now on `store` is this one. */
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
