/**
 * Kerberos tickets by which sessions sign in at their targets. The broker asks the KDCs of the account's domain, as it
 * alone has the password; a proxy gets the ticket for its session's target, and nothing else of the realm.
 */
import { Buffer } from 'node:buffer'
import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { Audit } from '../audit/events/catalogue.ts'
import type { ServiceTicket, ServiceTicketAnswer } from '../contract/gate.ts'
import { KDC_PORT, Kdc, KdcError } from '../identity/methods/kerberos/kdc.ts'
import { ServerOrder } from '../identity/methods/servers.ts'
import { KdcRefusal, WeakKeysError } from '../kerberos/refusals.ts'
import { firstTicket, type HeldTicket, serviceTicket } from '../kerberos/requests.ts'
import { type DomainKerberos, principalOf } from '../model/domain-kerberos.ts'
import type { Domain, Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import { wipe } from '../vault/credentials.ts'
import type { Vault } from '../vault/vault.ts'
import { type RunningSession, sessionFields } from './running.ts'

/** Milliseconds for all KDCs: the target waits meanwhile. */
const MAX_MS = 20_000
/** Domains whose KDCs are kept in order. */
const MAX_DOMAINS = 256
/** Longest password that becomes a key. */
const MAX_PASSWORD = 1024
/** First component of the service of remote desktops. */
const SERVICE = 'TERMSRV'

/** Why there is no ticket: stable words, with which the event's reason begins. */
export const TICKET_FAILURES = {
  account_disabled: 'the KDC says that the account is disabled, locked or has expired',
  account_expired: 'the KDC says that the account has expired',
  clock_skew: 'the clocks of the bastion and the KDC differ too much',
  encryption_type: 'the account or the target has no AES key at the KDC',
  kdc_error: 'the KDC answers with an error',
  no_host_name: 'the target is entered by its address, and Kerberos needs its name',
  no_kdc: 'no KDC of the domain answers',
  no_password: 'the account has no password here',
  not_allowed: 'a policy of the KDC forbids it',
  other_realm: 'the account is of another realm than its domain names',
  password_must_change: "the account's password has expired and must be changed first",
  unknown_account: 'the KDC does not know the account',
  unknown_service: 'the KDC does not know the target by this name',
  unproved_kdc: 'the answer does not come from a KDC that knows the account',
  wrong_password: "the KDC refused the account's password",
} as const
export type TicketFailure = keyof typeof TICKET_FAILURES

/** Failures that judge the account: another way to sign in would only be one more wrong attempt. */
const FINAL: readonly TicketFailure[] = [
  'account_disabled',
  'account_expired',
  'not_allowed',
  'password_must_change',
  'wrong_password',
]

/** Error codes of a KDC (RFC 4120 7.5.9) about the account, and about the target. */
const ABOUT_ACCOUNT: Readonly<Record<number, TicketFailure>> = {
  1: 'account_expired',
  6: 'unknown_account',
  12: 'not_allowed',
  14: 'encryption_type',
  18: 'account_disabled',
  23: 'password_must_change',
  24: 'wrong_password',
  31: 'wrong_password',
}
const ABOUT_SERVICE: Readonly<Record<number, TicketFailure>> = {
  7: 'unknown_service',
  12: 'not_allowed',
  14: 'encryption_type',
}
const SKEW = 37

/** No KDC has issued the ticket. */
class NoTicketError extends Error {
  readonly failure: TicketFailure

  constructor(failure: TicketFailure, detail = '') {
    super(detail)
    this.failure = failure
  }
}

export interface TargetTicketsOptions {
  store: Pick<Store, 'accounts' | 'domains' | 'services'>
  vault: Pick<Vault, 'credentials'>
  audit: Audit
  /** Milliseconds since the epoch. */
  now: () => number
}

/** Terms of one request. */
interface Wanted {
  domain: Domain & { kerberos: DomainKerberos }
  accountId: Id
  userName: string
  service: string[]
}

type Asked = { ticket: HeldTicket; kdc: string } | { judged: NoTicketError }

export class TargetTickets {
  readonly #options: TargetTicketsOptions
  /** By domain, in the order of their last use. */
  readonly #orders = new Map<Id, { kerberos: DomainKerberos; order: ServerOrder<Kdc> }>()

  constructor(options: TargetTicketsOptions) {
    this.#options = options
  }

  /** Gets a ticket for the session's target. The event is written before the ticket is handed out. */
  async issue(session: RunningSession): Promise<ServiceTicketAnswer> {
    const { audit } = this.#options
    const failures: string[] = []
    const service = { object_type: 'kerberos_service', object: `${SERVICE}/${session.target.host}` }
    try {
      const wanted = await this.#wanted(session)
      service.object = `${wanted.service.join('/')}@${wanted.domain.kerberos.realm}`
      const { ticket, kdc } = await this.#ask(wanted, failures)
      const reason = failures.length > 0 && { reason: failures.join('; ') }
      await audit
        .record('session.kerberos', {
          ...sessionFields(session),
          ...service,
          destination: kdc,
          result: 'success',
          ...reason,
        })
        .catch((error: unknown) => {
          ticket.key.bytes.fill(0)
          throw error
        })
      return { result: 'issued', ticket: plain(ticket) }
    } catch (error) {
      if (!(error instanceof NoTicketError)) throw error
      const { failure, message } = error
      const details = [message, ...failures].filter((one) => one !== '').join('; ')
      await audit.record('session.kerberos', {
        ...sessionFields(session),
        ...service,
        result: 'failure',
        reason: details === '' ? failure : `${failure}: ${details}`,
      })
      return {
        result: 'failed',
        message: `there is no Kerberos ticket for it: ${wordsOf(error)}`,
        ...(FINAL.includes(failure) && { isFinal: true as const }),
      }
    }
  }

  /** @throws NoTicketError */
  async #wanted({ target }: RunningSession): Promise<Wanted> {
    const { store } = this.#options
    const account = target.accountId === undefined ? undefined : await store.accounts.find(target.accountId)
    const domain = account && (await store.domains.find(account.domainId))
    const kerberos = domain?.kerberos
    if (!account || !kerberos) throw new NoTicketError('no_kdc', 'the domain names no realm any more')
    const userName = principalOf(target.accountLogin, kerberos.realm)
    if (userName === undefined) throw new NoTicketError('other_realm')
    const host = (await store.services.find(target.serviceId))?.kerberosHost ?? target.host
    if (isIP(host) !== 0) throw new NoTicketError('no_host_name', host)
    return { domain: { ...domain, kerberos }, accountId: account.id, userName, service: [SERVICE, host] }
  }

  /** @throws NoTicketError; `failures` gets a text for each KDC that could not judge. */
  async #ask(wanted: Wanted, failures: string[]): Promise<{ ticket: HeldTicket; kdc: string }> {
    const { accountId, domain } = wanted
    const password = await this.#password(accountId)
    const signal = AbortSignal.timeout(MAX_MS)
    let last: NoTicketError | undefined
    try {
      const asked = await this.#orderOf(domain).first<Asked>(
        (kdc) => this.#askOne(kdc, wanted, password, signal),
        (kdc, error) => {
          last = error instanceof NoTicketError ? error : new NoTicketError('no_kdc', error.message)
          failures.push(`${kdc.name}: ${last.message}`)
        },
        signal,
      )
      if (asked && 'ticket' in asked) return asked
      if (asked) throw asked.judged
      // The text of the last one is among the failures.
      const detail = last ? '' : 'no KDC is left to be asked just now'
      throw last?.failure === 'clock_skew' ? last : new NoTicketError(last?.failure ?? 'no_kdc', detail)
    } finally {
      password.fill(0)
    }
  }

  /** @throws NoTicketError if this KDC cannot judge */
  async #askOne(kdc: Kdc, wanted: Wanted, password: Buffer, signal: AbortSignal): Promise<Asked> {
    const { domain, userName, service } = wanted
    const access = { now: this.#options.now, ask: (request: Uint8Array) => kdc.ask(request, signal) }
    let first: HeldTicket | undefined
    try {
      first = await firstTicket({ realm: domain.kerberos.realm, userName, password }, access)
      return { ticket: await serviceTicket(first, service, access), kdc: kdc.name }
    } catch (error) {
      const { failure, isJudged } = judgementOf(error as Error)
      const detail = `${kdc.name}: ${(error as Error).message}`
      if (isJudged) return { judged: new NoTicketError(failure, detail) }
      throw new NoTicketError(failure, (error as Error).message)
    } finally {
      first?.key.bytes.fill(0)
    }
  }

  /** @throws NoTicketError if the account has none */
  async #password(accountId: Id): Promise<Buffer> {
    const stored = await this.#options.vault.credentials(accountId)
    try {
      const found = stored.find((one) => one.type === 'password')
      if (!found || found.password.length === 0 || MAX_PASSWORD < found.password.length)
        throw new NoTicketError('no_password')
      return Buffer.from(found.password.reveal())
    } finally {
      for (const one of stored) wipe(one)
    }
  }

  #orderOf({ id, kerberos }: Wanted['domain']): ServerOrder<Kdc> {
    const kept = this.#orders.get(id)
    this.#orders.delete(id)
    const [oldest] = this.#orders.keys()
    if (this.#orders.size >= MAX_DOMAINS && oldest !== undefined) this.#orders.delete(oldest)
    const isCurrent = kept && isDeepStrictEqual(kept.kerberos, kerberos)
    const order = isCurrent ? kept.order : this.#newOrder(kerberos)
    this.#orders.set(id, { kerberos, order })
    return order
  }

  #newOrder({ kdcs, timeoutMs }: DomainKerberos): ServerOrder<Kdc> {
    const all = kdcs.map(({ host, port = KDC_PORT }) => new Kdc({ host, port, timeoutMs }))
    return new ServerOrder(all, this.#options.now)
  }
}

/** `isJudged`: other KDCs would say the same. */
function judgementOf(error: Error): { failure: TicketFailure; isJudged: boolean } {
  if (error instanceof KdcError) return { failure: 'no_kdc', isJudged: false }
  if (error instanceof WeakKeysError) return { failure: 'encryption_type', isJudged: true }
  if (!(error instanceof KdcRefusal)) return { failure: 'unproved_kdc', isJudged: false }
  const { code, isOfService } = error
  const failure = (isOfService ? ABOUT_SERVICE : ABOUT_ACCOUNT)[code]
  if (failure) return { failure, isJudged: true }
  return { failure: code === SKEW ? 'clock_skew' : 'kdc_error', isJudged: false }
}

/** Returns the words for a user: of a clock with the seconds, and else without a KDC's own text. */
function wordsOf({ failure, message }: NoTicketError): string {
  return failure === 'clock_skew' ? `${TICKET_FAILURES[failure]}: ${message}` : TICKET_FAILURES[failure]
}

const plain = ({ realm, client, ticket, key }: HeldTicket): ServiceTicket => ({
  realm,
  client,
  ticket,
  key: { type: key.type.number, bytes: key.bytes },
})
