/** Clients that wait for approvals: each is notified when its own has changed. Nothing looks at those that have not. */
import type { GateNotice, WaitState } from '../contract/gate.ts'
import type { Approval } from '../model/approvals.ts'
import type { Id } from '../model/objects.ts'
import { Pace } from '../threads/pace.ts'
import { type Approvals, stateText } from './approvals.ts'
import type { Touched } from './touched.ts'

interface Wait {
  identities: Set<string>
  answerBy: number
  /** The state that the clients know. */
  known: string
}

export interface WaitsOptions {
  approvals: Pick<Approvals, 'expireOverdue'>
  store: { some(ids: readonly Id[]): Promise<Approval[]>; find(id: Id): Promise<Approval | undefined> }
  notify: (notice: GateNotice) => void
  /** Milliseconds since the epoch. */
  now: () => number
}

export class Waits {
  readonly #options: WaitsOptions
  readonly #byApproval = new Map<Id, Wait>()
  readonly #byIdentity = new Map<string, Set<Id>>()
  /** Not later than the first time at which one expires. */
  #first = Number.POSITIVE_INFINITY

  constructor(options: WaitsOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#byApproval.size
  }

  /** Notifies the client of each change from now on. */
  add(approval: Approval, identity: string): void {
    const { id, answerBy } = approval
    const wait = this.#byApproval.get(id) ?? { identities: new Set(), answerBy, known: stateOf(approval) }
    wait.identities.add(identity)
    this.#byApproval.set(id, wait)
    const own = this.#byIdentity.get(identity) ?? new Set()
    this.#byIdentity.set(identity, own.add(id))
    this.#first = Math.min(this.#first, answerBy)
    // It may have changed before the client was here: the client has its answer first.
    setImmediate(() => void this.#recheck(id).catch(() => undefined))
  }

  async #recheck(id: Id): Promise<void> {
    if (this.#byApproval.has(id)) this.#tell(id, await this.#options.store.find(id))
  }

  /** Forgets a client that waits no longer for this approval, or for any. Returns those that no client waits for now. */
  remove(identity: string, approval?: Id): Id[] {
    const own = this.#byIdentity.get(identity) ?? new Set()
    const left = approval === undefined ? [...own] : [approval].filter((one) => own.has(one))
    return left.filter((one) => this.#forget(one, identity))
  }

  /** Notifies the clients whose approvals were touched. */
  async review(touched: Touched): Promise<void> {
    if (this.#byApproval.size === 0) return
    const ids = touched.approvalsAmong(this.#byApproval)
    if (ids.length === 0) return
    const found = new Map((await this.#options.store.some(ids)).map((one) => [one.id, one]))
    const pace = new Pace()
    for (const id of ids) {
      await pace.step()
      this.#tell(id, found.get(id))
    }
  }

  /** Ends the requests whose time has come, of clients that wait here. Returns whether it has ended some. */
  async tick(): Promise<boolean> {
    const now = this.#options.now()
    if (now < this.#first) return false
    const ended = await this.#options.approvals.expireOverdue()
    this.#first = Number.POSITIVE_INFINITY
    // One that could not be ended yet is tried again with the next tick.
    for (const { answerBy } of this.#byApproval.values()) this.#first = Math.min(this.#first, answerBy)
    return ended > 0
  }

  /** Sends the clients away. Their requests stay. */
  dismiss(): void {
    for (const [approval, { identities }] of this.#byApproval) {
      const text = `a newer broker takes over: connect again, the request ${approval} stays`
      for (const identity of identities)
        this.#options.notify({ type: 'approval', identity, approval, state: 'cancelled', text })
    }
    this.#byApproval.clear()
    this.#byIdentity.clear()
  }

  #tell(id: Id, approval: Approval | undefined): void {
    const wait = this.#byApproval.get(id)
    if (!wait) return
    const known = approval ? stateOf(approval) : 'gone'
    if (known === wait.known) return
    wait.known = known
    const state: WaitState = approval?.state ?? 'cancelled'
    const text = approval ? stateText(approval, this.#options.now()) : 'the request is gone'
    for (const identity of [...wait.identities]) {
      if (state !== 'pending') this.#forget(id, identity)
      this.#options.notify({ type: 'approval', identity, approval: id, state, text })
    }
  }

  /** Returns whether no client waits for the approval any more. */
  #forget(approval: Id, identity: string): boolean {
    const own = this.#byIdentity.get(identity)
    own?.delete(approval)
    if (own?.size === 0) this.#byIdentity.delete(identity)
    const wait = this.#byApproval.get(approval)
    wait?.identities.delete(identity)
    if (wait?.identities.size !== 0) return false
    this.#byApproval.delete(approval)
    return true
  }
}

const stateOf = ({ state, answers, duration }: Approval): string => `${state} ${answers.length} ${duration}`
