/** Checks whether sessions may keep their targets. Caches each pair of user and target: use one object per check. */
import { type Target, targetsOf } from '../access/targets.ts'
import { lasting } from '../model/timeframes.ts'
import type { Store, TargetRow } from '../store/store.ts'
import type { RunningSession } from './running.ts'

type Held = Pick<RunningSession, 'userId' | 'target' | 'isRecorded' | 'begin' | 'approval' | 'hasFactor'>

export class TargetLook<S extends Held = RunningSession> {
  readonly #store: Pick<Store, 'access'>
  readonly #now: () => number
  readonly #onKept: (session: S, rows: readonly TargetRow[]) => void
  readonly #granted = new Map<string, TargetRow[]>()

  /** `onKept` is called with each session that may continue, and all that grants its target at any time. */
  constructor(
    store: Pick<Store, 'access'>,
    now: () => number,
    onKept: (session: S, rows: readonly TargetRow[]) => void,
  ) {
    this.#store = store
    this.#now = now
    this.#onKept = onKept
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
  async flawOf(session: S): Promise<string | undefined> {
    const { userId, target } = session
    const { serviceId, accountId } = target
    const key = keyOf({ userId, serviceId, accountId })
    if (!this.#granted.has(key)) await this.prepare([session])
    const rows = this.#granted.get(key) ?? []
    const flaw = flawOfTarget(session, rows, this.#now())
    if (flaw === undefined) this.#onKept(session, rows)
    return flaw
  }
}

/**
 * Returns why a session has to end at this time, or undefined if it may continue. `rows`: all that grants its target,
 * of which those count whose timeframes hold, or in whose overtime it is.
 */
export function flawOfTarget(
  { target, isRecorded, begin, approval, hasFactor }: Omit<Held, 'userId'>,
  rows: readonly TargetRow[],
  now: number,
): string | undefined {
  const counting = { hasFactor, ...(approval && { approved: approval.authorizationId }) }
  const of = (some: readonly TargetRow[]) =>
    targetsOf(some, target.protocol, counting).find(({ kind }) => kind === target.kind)
  // Approvers have let it begin outside of its timeframes.
  const held = target.isOutside ? rows : lasting(rows, begin, now)
  const granted = of(held)
  if (!granted || isAsking(granted) || !hasAll(granted, target)) {
    const ever = held.length < rows.length ? of(rows) : undefined
    if (ever && !isAsking(ever) && hasAll(ever, target)) return 'the timeframe of the authorization is over'
    if (granted?.quorum !== undefined) return 'sessions of this target need an approval from now on'
    if (granted?.needsFactor) return 'sessions of this target need a second factor from now on'
    return granted ? 'a right of this session was taken away' : 'the authorization for this target is gone'
  }
  if (granted.isRecorded && !isRecorded) return 'sessions of this target are recorded from now on'
  if (granted.isWatched && !target.isWatched) return 'sessions of this target have to be watched from now on'
  return granted.isStrict && !target.isStrict
    ? 'sessions of this target are recorded strictly from now on'
    : undefined
}

const keyOf = ({
  userId,
  serviceId,
  accountId,
}: Pick<TargetRow, 'serviceId' | 'accountId'> & { userId: string }) =>
  `${userId} ${accountId ?? ''} ${serviceId}`

/** Whether the session could not begin like this. */
const isAsking = ({ quorum, needsFactor }: Target) => quorum !== undefined || needsFactor === true

function hasAll(granted: Target, { rights }: Target): boolean {
  return rights.every((right) => granted.rights.includes(right))
}
