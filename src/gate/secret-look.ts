/** Checks whether sessions rest on a secret that an administrator has replaced since. Use one object per check. */
import type { Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { RunningSession } from './running.ts'

type Rests = Pick<RunningSession, 'severedRevision' | 'target'>

export class SecretLook {
  readonly #store: Pick<Store, 'accounts'>
  readonly #revisions = new Map<Id, number>()

  constructor(store: Pick<Store, 'accounts'>) {
    this.#store = store
  }

  /** Asks for the accounts of these sessions together, for `flawOf`. */
  async prepare(sessions: readonly Rests[]): Promise<void> {
    const ids = sessions.flatMap(({ target: { accountId } }) => accountId ?? [])
    const unknown = [...new Set(ids)].filter((id) => !this.#revisions.has(id))
    if (unknown.length === 0) return
    for (const [id, revision] of await this.#store.accounts.severedRevisions(unknown))
      this.#revisions.set(id, revision)
  }

  /** Returns why the session has to end, as text for the user, or undefined if it may continue. */
  async flawOf(session: Rests): Promise<string | undefined> {
    const { accountId } = session.target
    if (accountId === undefined || session.severedRevision === undefined) return undefined
    if (!this.#revisions.has(accountId)) await this.prepare([session])
    const now = this.#revisions.get(accountId) ?? 0
    return now > session.severedRevision ? 'the secret of its account was changed' : undefined
  }
}
