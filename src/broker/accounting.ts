/**
 * Receivers of accounting: one for each object of external sign-in that has it on. The objects are in the database, and
 * may be changed by another process: they are looked at every few seconds.
 */
import { type AccountingRecord, targetText } from '../accounting/record.ts'
import { AccountingSink } from '../accounting/sink.ts'
import { TacacsSender } from '../accounting/tacacs.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import type { Sink } from '../audit/sink.ts'
import { openExternal } from '../identity/external-secrets.ts'
import type { ExternalAuth } from '../model/external-auths.ts'
import type { Secret } from '../model/secret.ts'
import type { Store } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'

export const ACCOUNTING_LOOK_MS = 2000
/** Interval of the reports about running sessions. */
const INTERIM_MS = 10 * 60_000
const SECRET = 'shared_secret'

export interface AccountingDeps {
  store: Pick<Store, 'externalAuths' | 'sessions'>
  vault: Pick<Vault, 'open'>
  audit: Pick<Audit, 'record'>
  /** Milliseconds since the epoch. */
  now: () => number
  onError: (error: Error) => void
}

export class Accounting {
  readonly #deps: AccountingDeps
  /** The objects that the current receivers were made of. */
  #made = ''

  constructor(deps: AccountingDeps) {
    this.#deps = deps
  }

  /** Returns receivers for the present objects. */
  async sinks(): Promise<Sink[]> {
    const auths = await this.#accounting()
    const sinks = await Promise.all(auths.map((auth) => this.#sinkOf(auth)))
    this.#made = JSON.stringify(auths)
    return sinks
  }

  /** Whether the objects differ from those that the receivers were made of. */
  async hasChanged(): Promise<boolean> {
    return JSON.stringify(await this.#accounting()) !== this.#made
  }

  async #accounting(): Promise<(ExternalAuth & { type: 'TACACS' })[]> {
    const { items } = await this.#deps.store.externalAuths.list()
    return items
      .filter((auth) => auth.type === 'TACACS')
      .filter(({ options }) => options.accounting || options.commandAccounting)
  }

  async #sinkOf(auth: ExternalAuth & { type: 'TACACS' }): Promise<Sink> {
    const { store, vault, audit, now, onError } = this.#deps
    let sharedSecret: Secret | undefined
    try {
      const sealed = (await store.externalAuths.sealedSecrets(auth.id)).get(SECRET)
      sharedSecret = sealed && openExternal(vault, auth.id, SECRET, sealed)
    } catch (error) {
      // Without its secret the receiver is down, and says so; the broker runs.
      onError(error as Error)
    }
    const about = { object_type: 'tacacs', object: auth.authenticationName }
    return new AccountingSink({
      type: 'tacacs',
      address: auth.authenticationName,
      id: auth.id,
      sender: new TacacsSender({ auth, secrets: { ...(sharedSecret && { sharedSecret }) }, now }),
      ...(auth.options.accounting && {
        interim: { intervalMs: INTERIM_MS, running: () => this.#running() },
      }),
      onRefused: ({ kind, session }, reason) => {
        audit
          .record('sink.missed', {
            ...about,
            count: 1,
            reason: `the ${kind} of ${session} is refused: ${reason}`,
          })
          .catch(onError)
      },
    })
  }

  async #running(): Promise<AccountingRecord[]> {
    const time = this.#deps.now()
    const { items } = await this.#deps.store.sessions.list({ status: 'current' }, { offset: 0, limit: -1 })
    return items.map((session) => ({
      kind: 'interim',
      session: session.id,
      user: session.user,
      source: session.sourceIp,
      protocol: session.protocol,
      target: targetText(session),
      time,
      elapsed: Math.max(0, time - session.begin),
    }))
  }
}
