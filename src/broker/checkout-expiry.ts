/** Ends expired checkouts, with an event for each. */
import type { Audit } from '../audit/events/catalogue.ts'
import { fieldsOf } from '../gate/checkout-review.ts'
import type { Checkout, Id } from '../model/objects.ts'
import { MissingReferenceError } from '../store/engine/errors.ts'
import type { Store } from '../store/store.ts'
import { type EndOfCheckout, endsOf, type GroundsStore } from '../vault/checkout-grounds.ts'

/** Checkouts ended at a time: their events share commits, and the next ones wait for them. */
const MAX_AT_ONCE = 64

/** Milliseconds between two runs: how late the event may be. The checkout itself expires in time. */
export const EXPIRY_INTERVAL_MS = 5000

/** Changes of secrets that follow the ends of checkouts. */
export interface ReturnedSecrets {
  onReturn(accountId: Id, cause: 'checkin', user: string): Promise<void>
  freed(accountId: Id): Promise<void>
}

export interface CheckoutExpiryOptions {
  store: GroundsStore & Pick<Store, 'checkouts'>
  audit: Pick<Audit, 'record'>
  /** Milliseconds since the epoch. */
  now: () => number
  secretChanges?: ReturnedSecrets
}

export class CheckoutExpiry {
  readonly #options: CheckoutExpiryOptions
  #current: Promise<void> | undefined

  constructor(options: CheckoutExpiryOptions) {
    this.#options = options
  }

  /**
   * Ends all that have expired; simultaneous calls share one run. Rejects if some could not be ended, which the next run
   * tries again; all others have.
   */
  run(): Promise<void> {
    this.#current ??= this.#all().finally(() => {
      this.#current = undefined
    })
    return this.#current
  }

  async #all(): Promise<void> {
    const { store } = this.#options
    const now = this.#options.now()
    const failures: unknown[] = []
    let last: Checkout | undefined
    do {
      const some: Checkout[] = await store.checkouts.expired(now, MAX_AT_ONCE, last)
      const endOf = await endsOf(store, some)
      for (const done of await Promise.allSettled(some.map((one) => this.#end(one, endOf))))
        if (done.status === 'rejected') failures.push(done.reason)
      last = some.length < MAX_AT_ONCE ? undefined : some.at(-1)
    } while (last)
    if (failures.length > 0) throw failures[0]
  }

  async #end(checkout: Checkout, endOf: EndOfCheckout): Promise<void> {
    const { store, audit, secretChanges } = this.#options
    const { id, accountId, userId, expires } = checkout
    const { until, reason } = endOf(checkout, expires)
    // What was lost since has not ended it.
    const isKnown = Number.isFinite(until) && until <= expires && reason !== undefined
    const fields = await fieldsOf(store, checkout)
    await audit.record('checkout.expired', { ...fields, ...(isKnown && { reason }) })
    await secretChanges?.onReturn(accountId, 'checkin', String(fields.user ?? userId))
    try {
      await store.checkouts.end(id, expires)
    } catch (error) {
      // A broker that is being replaced has ended it.
      if (!(error instanceof MissingReferenceError)) throw error
    }
    await secretChanges?.freed(accountId)
  }
}
