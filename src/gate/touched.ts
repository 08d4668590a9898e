/** Ids of changed objects, and bases to judge, as a test of what runs. */
import type { Basis } from '../identity/basis.ts'
import type { Checkout, Id } from '../model/objects.ts'
import type { Change, ChangeKind, Store } from '../store/store.ts'
import { Pace } from '../threads/pace.ts'
import type { RunningSession } from './running.ts'

/** Groups whose members are looked up; if more have changed, all are reviewed. */
const MAX_GROUPS = 16

/** Users of whom it is asked at a time whether they are in a group. */
const TOGETHER = 256

/** Kinds that a user's targets rest on, but not the user. */
const OF_TARGETS = ['device', 'service', 'domain', 'account'] as const

export class Touched {
  readonly #ids = new Map<ChangeKind, Set<Id>>()
  readonly #bases = new Set<Basis>()
  readonly #sessions = new Set<RunningSession>()
  #isAll = false
  #isEveryKey = false

  get isNothing(): boolean {
    const some = this.#ids.size + this.#bases.size + this.#sessions.size
    return !this.#isAll && !this.#isEveryKey && some === 0
  }

  add({ kind, object }: Pick<Change, 'kind' | 'object'>): void {
    if (kind === 'everyone') this.#isAll = true
    else this.#of(kind).add(object)
  }

  addBasis(basis: Basis): void {
    this.#bases.add(basis)
  }

  /** Adds a session whose timeframe begins or ends. */
  addSession(session: RunningSession): void {
    this.#sessions.add(session)
  }

  /** Adds all who signed in by a key or certificate. */
  addKeys(): void {
    this.#isEveryKey = true
  }

  addAll(): void {
    this.#isAll = true
  }

  /** Adds what `other` holds. */
  merge(other: Touched): void {
    this.#isAll ||= other.#isAll
    this.#isEveryKey ||= other.#isEveryKey
    for (const basis of other.#bases) this.#bases.add(basis)
    for (const session of other.#sessions) this.#sessions.add(session)
    for (const [kind, ids] of other.#ids) for (const id of ids) this.#of(kind).add(id)
  }

  /** Adds those of `userIds` that are in the groups, or have rights to the target groups. */
  async resolve(
    access: Pick<Store['access'], 'membersAmong' | 'groupsAt'>,
    userIds: () => Promise<Id[]>,
  ): Promise<void> {
    const groups = new Set(this.#ids.get('user_group'))
    const targetGroups = this.#ids.get('target_group') ?? new Set()
    if (groups.size + targetGroups.size > MAX_GROUPS) this.#isAll = true
    if (this.#isAll) return
    for (const id of targetGroups) for (const group of await access.groupsAt(id)) groups.add(group)
    const running = groups.size === 0 ? [] : await userIds()
    const pace = new Pace()
    for (const group of groups) {
      for (let begin = 0; begin < running.length; begin += TOGETHER) {
        await pace.step()
        const some = running.slice(begin, begin + TOGETHER)
        for (const member of await access.membersAmong(some, group)) this.#of('user').add(member)
      }
    }
  }

  hasUser(id: Id | undefined): boolean {
    return this.#isAll || (id !== undefined && this.#has('user', id))
  }

  hasBasis(basis: Basis): boolean {
    const { userId, proof } = basis
    return (
      this.hasUser(userId) ||
      this.#bases.has(basis) ||
      (proof.method === 'key' && this.#isEveryKey) ||
      (proof.method === 'api_key' && this.#has('api_key', proof.id))
    )
  }

  hasSession(session: RunningSession): boolean {
    const { userId, basis, target, approval } = session
    return (
      this.#sessions.has(session) ||
      this.hasUser(userId) ||
      this.hasBasis(basis) ||
      this.#has('service', target.serviceId) ||
      this.#has('device', target.deviceId) ||
      (approval !== undefined && this.#has('approval', approval.id)) ||
      (target.accountId !== undefined && this.#has('account', target.accountId)) ||
      (target.domainId !== undefined && this.#has('domain', target.domainId))
    )
  }

  /** Returns those of the approvals that have changed. */
  approvalsAmong(known: ReadonlyMap<Id, unknown>): Id[] {
    if (this.#isAll) return [...known.keys()]
    return [...(this.#ids.get('approval') ?? [])].filter((id) => known.has(id))
  }

  /** A service may have been what gave the user the account. */
  hasCheckout({ userId, accountId, apiKeyId }: Pick<Checkout, 'userId' | 'accountId' | 'apiKeyId'>): boolean {
    return (
      this.hasUser(userId) ||
      this.#has('account', accountId) ||
      this.#ids.has('service') ||
      (apiKeyId !== undefined && this.#has('api_key', apiKeyId))
    )
  }

  /** Whether something has changed that targets of any user may rest on. */
  get hasTargets(): boolean {
    return this.#isAll || OF_TARGETS.some((kind) => this.#ids.has(kind))
  }

  #has(kind: ChangeKind, id: Id): boolean {
    return this.#ids.get(kind)?.has(id) === true
  }

  #of(kind: ChangeKind): Set<Id> {
    const known = this.#ids.get(kind)
    if (known) return known
    const made = new Set<Id>()
    this.#ids.set(kind, made)
    return made
  }
}
