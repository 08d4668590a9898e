/** Checks whether the approvals of sessions still hold. Reads each approval once: use one object per check. */
import { type Approval, holds } from '../model/approvals.ts'
import type { Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { RunningSession } from './running.ts'

export interface ApprovalLookOptions {
  store: Pick<Store, 'approvals'>
  /** Milliseconds since the epoch. */
  now: () => number
}

export const OVER = 'the time of the approval is over'

export class ApprovalLook {
  readonly #options: ApprovalLookOptions
  readonly #found = new Map<Id, Approval | undefined>()

  constructor({ store, now }: ApprovalLookOptions) {
    this.#options = { store, now }
  }

  /** Reads the approvals of these sessions together, for `flawOf`. */
  async prepare(sessions: readonly Pick<RunningSession, 'approval'>[]): Promise<void> {
    const ids = new Set(sessions.flatMap(({ approval }) => (approval ? [approval.id] : [])))
    const unknown = [...ids].filter((id) => !this.#found.has(id))
    if (unknown.length === 0) return
    for (const id of unknown) this.#found.set(id, undefined)
    for (const one of await this.#options.store.approvals.some(unknown)) this.#found.set(one.id, one)
  }

  /** Returns why the session has to end, as text for the user, or undefined if it may continue. */
  async flawOf(session: Pick<RunningSession, 'approval'>): Promise<string | undefined> {
    if (!session.approval) return undefined
    await this.prepare([session])
    const approval = this.#found.get(session.approval.id)
    if (!approval) return 'the approval of the session is gone'
    if (holds(approval, this.#options.now())) return undefined
    if (approval.state === 'accepted') return OVER
    const { by = '', comment = '' } = approval.ended ?? {}
    return `the approval was revoked${by === '' ? '' : ` by ${by}`}${comment === '' ? '' : `: ${comment}`}`
  }
}
