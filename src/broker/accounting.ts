/**
 * Receivers of accounting: one for each object of external sign-in that has it on. The objects are in the database, and
 * may be changed by another process: they are looked at every few seconds.
 */

import { Buffer } from 'node:buffer'
import { setTimeout as sleep } from 'node:timers/promises'
import { RadiusSender } from '../accounting/radius.ts'
import { type AccountingRecord, type Octets, targetText } from '../accounting/record.ts'
import type { AccountingSender } from '../accounting/sender.ts'
import { AccountingSink } from '../accounting/sink.ts'
import { TacacsSender } from '../accounting/tacacs.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import type { Sink } from '../audit/sink.ts'
import { openExternal } from '../identity/external-secrets.ts'
import { ACCOUNTING_INTERVAL, type ExternalAuth } from '../model/external-auths.ts'
import type { Id } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import type { Store } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { KeptSinks } from './kept-sinks.ts'

export const ACCOUNTING_LOOK_MS = 2000
const MINUTE_MS = 60_000
const SECRET = 'shared_secret'
/** Milliseconds until the row of a session is looked for again, and the age of events for which it may be late. */
const ROW_MS = 250
const SOON_MS = 10_000

export interface AccountingDeps {
  store: Pick<Store, 'externalAuths' | 'sessions'>
  /** Octets so far of the sessions that run in this broker. */
  octets: () => Promise<ReadonlyMap<Id, Octets>>
  vault: Pick<Vault, 'open'>
  audit: Pick<Audit, 'record'>
  /** Milliseconds since the epoch. */
  now: () => number
  onError: (error: Error) => void
}

type Accountable = Extract<ExternalAuth, { type: 'RADIUS' | 'TACACS' }>

export class Accounting {
  readonly #deps: AccountingDeps
  readonly #kept = new KeptSinks()

  constructor(deps: AccountingDeps) {
    this.#deps = deps
  }

  /** Returns receivers for the present objects: of those that have not changed the same as before. */
  async sinks(): Promise<Sink[]> {
    return await this.#kept.of(await this.#accounting(), (auth) => this.#sinkOf(auth))
  }

  async #accounting(): Promise<Accountable[]> {
    const { items } = await this.#deps.store.externalAuths.list()
    return items.filter((auth): auth is Accountable => {
      if (auth.type === 'RADIUS') return auth.options.accountingPort !== undefined
      return auth.type === 'TACACS' && (auth.options.accounting || auth.options.commandAccounting)
    })
  }

  async #sinkOf(auth: Accountable): Promise<Sink> {
    const { store, vault, audit, now, onError } = this.#deps
    let sharedSecret: Secret | undefined
    try {
      const sealed = (await store.externalAuths.sealedSecrets(auth.id)).get(SECRET)
      sharedSecret = sealed && openExternal(vault, auth.id, SECRET, sealed)
    } catch (error) {
      // Without its secret the receiver is down, and says so; the broker runs.
      onError(error as Error)
    }
    const secrets = { ...(sharedSecret && { sharedSecret }) }
    let sender: AccountingSender
    let minutes: number | undefined
    if (auth.type === 'RADIUS') {
      sender = new RadiusSender({ auth, secrets, now })
      minutes = auth.options.accountingInterval ?? ACCOUNTING_INTERVAL
    } else {
      sender = new TacacsSender({ auth, secrets, now })
      if (auth.options.accounting) minutes = ACCOUNTING_INTERVAL
    }
    const type = auth.type === 'RADIUS' ? 'radius' : 'tacacs'
    const about = { object_type: type, object: auth.authenticationName }
    return new AccountingSink({
      type,
      address: auth.authenticationName,
      id: auth.id,
      sender,
      ...(minutes !== undefined && {
        interim: { intervalMs: minutes * MINUTE_MS, running: () => this.#running() },
      }),
      ...(type === 'radius' && { classesOf: (record) => this.#classesOf(record, auth.id) }),
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
    const counted = await this.#deps.octets()
    return items.map((session) => ({
      kind: 'interim',
      session: session.id,
      user: session.user,
      source: session.sourceIp,
      protocol: session.protocol,
      target: targetText(session),
      time,
      elapsed: Math.max(0, time - session.begin),
      ...(counted.has(session.id) && { octets: counted.get(session.id)! }),
    }))
  }

  /** Returns Class of the sign-in if this object has judged it. */
  async #classesOf({ session, time }: AccountingRecord, externalAuthId: Id): Promise<Uint8Array[]> {
    const { store, now } = this.#deps
    let found = await store.sessions.find(session)
    if (!found && now() - time < SOON_MS) {
      // The event of a session that opens comes before its row.
      await sleep(ROW_MS)
      found = await store.sessions.find(session)
    }
    return (found?.accountingClasses ?? [])
      .filter((one) => one.externalAuthId === externalAuthId)
      .flatMap(({ values }) => values.map((value) => Buffer.from(value, 'base64')))
  }
}
