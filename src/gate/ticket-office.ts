/** Issues one-time tickets and withdraws them, by the same rules as for opening a session. */
import { resolveTarget, type Target } from '../access/targets.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import { apiKeyOf, type Basis, type Grounds } from '../identity/basis.ts'
import { formatLogin, parseLogin, parseTargetName, type WantedTarget } from '../model/login.ts'
import type { Id, User } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import type { Store } from '../store/store.ts'
import type { Ticket, TicketProtocol, Tickets } from './tickets.ts'
import type { Touched } from './touched.ts'
import { chosen, type Withdrawals } from './withdrawals.ts'

export const TICKET_LIFETIME_MS = 300_000

export interface TicketRequest {
  user: Pick<User, 'id' | 'userName'>
  /** Basis of the request for the ticket. */
  basis: Basis
  /** A canonical name, or the part of a login string after the user. */
  target: string
  protocol: TicketProtocol
  /** Address that the viewer will connect from. */
  address: string
  /** The user has proved a second factor at the sign-in of the request. */
  hasFactor?: true
}

export type TicketAnswer =
  | {
      result: 'issued'
      /** Id of the ticket, for `withdraw`. */
      id: string
      target: Target
      /** Login string to show with the password, for viewers that accept both. */
      login: string
      password: Secret
      /** Milliseconds since the epoch. */
      expires: number
    }
  /** There is no such target, or the user may not open it. */
  | { result: 'unknown' }
  | { result: 'ambiguous'; candidates: string[] }
  | { result: 'too_many' }

export interface TicketOfficeOptions {
  store: Pick<Store, 'access'>
  tickets: Tickets
  audit: Audit
  grounds: () => Grounds
  /** Has all that rests on the basis judged with the next review. */
  watch: (basis: Basis) => void
  /** Milliseconds since the epoch. */
  now: () => number
}

export class TicketOffice {
  readonly #options: TicketOfficeOptions
  /** Tickets of this process with their bases, which a review knows as objects; used ones stay until they expire. */
  readonly #issued = new Map<string, Pick<Ticket, 'basis' | 'expires'>>()
  /** Milliseconds; applies to new tickets. */
  lifetime = TICKET_LIFETIME_MS

  constructor(options: TicketOfficeOptions) {
    this.#options = options
  }

  async issue({
    user,
    basis,
    target: text,
    protocol,
    address,
    hasFactor,
  }: TicketRequest): Promise<TicketAnswer> {
    const { tickets, now, watch } = this.#options
    const resolution =
      (await this.#resolved(user.id, parseTargetName(text), protocol)) ??
      (await this.#resolved(user.id, targetOf(text), protocol))
    if (!resolution) return { result: 'unknown' }
    if (resolution.result === 'ambiguous') return resolution
    const { target } = resolution
    const named = {
      account: target.accountName,
      domain: target.domainName,
      device: target.deviceName,
      service: target.serviceName,
    }
    const expires = now() + this.lifetime
    const whose = { userId: user.id, user: user.userName, basis, ...(hasFactor && { hasFactor }) }
    const ticket = { ...whose, protocol, address, expires, target: named }
    const issued = await tickets.issue(ticket, now())
    if (!issued) return { result: 'too_many' }
    this.#forgetOld()
    this.#issued.set(issued.id, { basis, expires })
    watch(basis)
    const login = formatLogin({ user: user.userName, target: named })
    return { result: 'issued', ...issued, target, login, expires }
  }

  /**
   * Returns the one target that is meant and allowed, the candidates if it is ambiguous, or undefined if
   * there is none.
   */
  async #resolved(userId: Id, wanted: WantedTarget | undefined, protocol: TicketProtocol) {
    if (!wanted) return undefined
    const { now, store } = this.#options
    const rows = await store.access.sessionTargets(userId, now(), { device: wanted.device })
    const resolution = resolveTarget(rows, wanted, protocol)
    if (resolution.result === 'found' && resolution.target.rights.length === 0) return undefined
    return resolution.result === 'unknown' ? undefined : resolution
  }

  /** Yields what the tickets rest on that this process has issued. */
  *bases(): Iterable<Basis> {
    this.#forgetOld()
    for (const { basis } of this.#issued.values()) yield basis
  }

  #forgetOld(): void {
    const now = this.#options.now()
    for (const [id, { expires }] of this.#issued) if (expires <= now) this.#issued.delete(id)
  }

  /** Withdraws a ticket that could not be delivered or is no longer to be valid. */
  async withdraw(id: string): Promise<void> {
    const { tickets, now } = this.#options
    await tickets.take(id, now())
  }

  /** Withdraws the tickets whose users may no longer use them. */
  async review(grounds: Grounds, withdrawals: Withdrawals, touched: Touched): Promise<void> {
    const { tickets, now } = this.#options
    const isTouched = ({ basis, userId }: Ticket) =>
      touched.hasUser(userId) || touched.hasBasis(basis) || touched.hasTargets
    const waiting = (await tickets.waiting(now())).map((ticket) => ({
      ...ticket,
      basis: this.#issued.get(ticket.id)?.basis ?? ticket.basis,
    }))
    await withdrawals.each(await chosen(waiting, isTouched), async (ticket) => {
      const reason = await this.#flawOf(ticket, grounds)
      // Taken by the review of one process, which writes the event.
      if (reason === undefined || !(await tickets.take(ticket.id, now()))) return undefined
      return () => this.#tellWithdrawn(ticket, reason)
    })
  }

  async #tellWithdrawn(ticket: Ticket, reason: string): Promise<void> {
    const { user, basis, protocol, target, address } = ticket
    const apiKey = apiKeyOf(basis)
    await this.#options.audit.record('ticket.withdraw', {
      user,
      ...(apiKey !== undefined && { api_key: apiKey }),
      protocol,
      ...target,
      object_type: 'address',
      object: address,
      reason,
    })
  }

  async #flawOf(
    { basis, address, userId, target, protocol }: Ticket,
    grounds: Grounds,
  ): Promise<string | undefined> {
    const flaw = await grounds.flawOf(basis, address)
    if (flaw !== undefined) return flaw
    const resolution = await this.#resolved(userId, target, protocol)
    return resolution?.result === 'found' ? undefined : 'the authorization for this target is gone'
  }
}

function targetOf(text: string): WantedTarget | undefined {
  const login = parseLogin(`user:${text}`)
  return 'malformed' in login ? undefined : login.target
}
