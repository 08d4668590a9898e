/** Checks whether sessions may keep their targets. Caches each pair of user and target: use one object per check. */
import { type Target, targetsOf } from '../access/targets.ts'
import type { Store, TargetRow } from '../store/store.ts'
import type { RunningSession } from './running.ts'

export class TargetLook {
  readonly #store: Pick<Store, 'access'>
  readonly #granted = new Map<string, TargetRow[]>()

  constructor(store: Pick<Store, 'access'>) {
    this.#store = store
  }

  /** Asks for the targets of these sessions together, for `flawOf`. */
  async prepare(sessions: readonly Pick<RunningSession, 'userId' | 'target'>[]): Promise<void> {
    const asked = new Map(
      sessions.map(({ userId, target }) => {
        const { serviceId, accountId } = target
        return [keyOf({ userId, serviceId, accountId }), { userId, serviceId, accountId }]
      }),
    )
    const unknown = [...asked].filter(([key]) => !this.#granted.has(key))
    const rows = await this.#store.access.grants(unknown.map(([, one]) => one))
    for (const [key] of unknown) this.#granted.set(key, [])
    for (const row of rows) this.#granted.get(keyOf(row))?.push(row)
  }

  /** Returns why the session has to end, as text for the user, or undefined if it may continue. */
  async flawOf(
    session: Pick<RunningSession, 'userId' | 'target' | 'isRecorded' | 'approval'>,
  ): Promise<string | undefined> {
    const { userId, target, isRecorded, approval } = session
    const { serviceId, accountId, kind, protocol } = target
    const key = keyOf({ userId, serviceId, accountId })
    if (!this.#granted.has(key)) await this.prepare([session])
    const counting = approval ? { approved: approval.authorizationId } : {}
    const rows = this.#granted.get(key) ?? []
    const granted = targetsOf(rows, protocol, counting).find((one) => one.kind === kind)
    if (!granted) return 'the authorization for this target is gone'
    if (granted.quorum !== undefined) return 'sessions of this target need an approval from now on'
    if (!hasAll(granted, target)) return 'a right of this session was taken away'
    if (granted.isRecorded && !isRecorded) return 'sessions of this target are recorded from now on'
    return granted.isStrict && !target.isStrict
      ? 'sessions of this target are recorded strictly from now on'
      : undefined
  }
}

const keyOf = ({
  userId,
  serviceId,
  accountId,
}: Pick<TargetRow, 'serviceId' | 'accountId'> & { userId: string }) =>
  `${userId} ${accountId ?? ''} ${serviceId}`

function hasAll(granted: Target, { rights }: Target): boolean {
  return rights.every((right) => granted.rights.includes(right))
}
