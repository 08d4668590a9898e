/**
 * Guests of running sessions. Each invitation has a ticket that signs in once, in the store until it is used. What
 * else belongs to an invitation is kept in memory, by the process in which the session runs: its proxy holds the guests'
 * connections; this file decides who may enter, for how long, and with which rights.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ulid } from 'ulid'
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { GateNotice, GuestIdentity, Source } from '../contract/gate.ts'
import { apiKeyOf, type Basis, type Grounds } from '../identity/basis.ts'
import { plainAddress, sameAddress } from '../model/networks.ts'
import type { Id } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import { vncAuthResponse } from '../model/vnc-auth.ts'
import type { InvitationRepository } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { newTicketPassword, sameBytes } from './one-time.ts'
import { type RunningSession, targetFields } from './running.ts'
import type { Touched } from './touched.ts'
import { chosen, type Withdrawals } from './withdrawals.ts'

/** Limit of invitations per session that wait or whose guest is connected. */
export const MAX_INVITATIONS = 8
/** Limit of invitations that wait, of all sessions: each more is one that a guess may hit. */
export const MAX_WAITING_INVITATIONS = 1000
/** Invitations that are compared in one turn of the event loop: a third of a millisecond each, on a slow machine. */
const COMPARED_AT_ONCE = 16
/** For a guest with a good ticket. */
const ELSEWHERE =
  'the session that you are invited to runs on in a broker that was replaced, and takes no guests any more'
/** User name for guests whose viewer requires one. */
export const GUEST_USER = 'guest'

export type GuestMode = 'view' | 'control'

export interface Invitation {
  id: Id
  session: Id
  /** The guest's name as the other participants see it. */
  name: string
  mode: GuestMode
  /** User that made the invitation. */
  by: string
  /** Address that the guest's viewer has to connect from. */
  address?: string
  /** Milliseconds since the epoch: end of the ticket's validity and of the guest's stay. */
  expires: number
  /** Address of the guest's viewer, if the guest is connected or being let in. */
  guest?: Source
}

interface Kept extends Invitation {
  session: Id
  running: RunningSession
  /** Bases of the users that decided on the guest's rights; the inviter's comes first. */
  bases: [Basis, ...Basis[]]
  timer: NodeJS.Timeout
  /** Token of the guest's identity, once signed in. */
  token?: string
  /** The invitation is withdrawn, and its guest has been notified. */
  isWithdrawn?: true
}

export interface InvitationsOptions {
  /** Those that wait. */
  stored: InvitationRepository
  vault: Pick<Vault, 'seal' | 'open'>
  /** Whether the session runs in a broker that this one has replaced. */
  runsElsewhere: (session: Id) => boolean
  audit: Audit
  notify: (notice: GateNotice) => void
  grounds: () => Grounds
  /** Called once for an invitation whose password does not open: by damage, or with keys of another vault. */
  onUnreadable?: (id: Id) => void
  /** Has all that rests on the basis judged with the next review. */
  watch: (basis: Basis) => void
  now: () => number
}

export type InviteRequest = Pick<Invitation, 'name' | 'mode' | 'by' | 'address'> & {
  /** Basis of the sign-in of `by`. */
  basis: Basis
  /** Milliseconds. */
  duration: number
}

export type InviteAnswer =
  /** The caller wipes the password. */
  | { result: 'invited'; invitation: Invitation; password: Secret }
  | { result: 'not_running' }
  /** The session shows no desktop, or nothing of it may be shown before its recording is on the disk. */
  | { result: 'not_shareable' }
  | { result: 'runs_elsewhere' }
  | { result: 'too_many' }

export class Invitations {
  readonly #options: InvitationsOptions
  readonly #kept = new Map<Id, Kept>()
  /** Waiting ones whose passwords do not open. */
  readonly #unreadable = new Set<Id>()

  constructor(options: InvitationsOptions) {
    this.#options = options
  }

  /** Makes an invitation. The password is returned only once. */
  async invite(
    running: RunningSession,
    request: InviteRequest,
  ): Promise<Extract<InviteAnswer, { result: 'invited' | 'too_many' | 'not_running' }>> {
    if (this.ofSession(running.id).length >= MAX_INVITATIONS) return { result: 'too_many' }
    const { stored, vault, now, watch } = this.#options
    const { duration, address, basis, ...rest } = request
    const id = ulid()
    const password = newTicketPassword()
    const timer = setTimeout(() => this.#expired(id), duration)
    timer.unref()
    const kept: Kept = {
      id,
      session: running.id,
      ...rest,
      ...(address !== undefined && { address: plainAddress(address) }),
      expires: now() + duration,
      running,
      bases: [basis],
      timer,
    }
    // Counts from now on.
    this.#kept.set(id, kept)
    const row = {
      id,
      session: running.id,
      address: address === undefined ? '' : sameAddress(address),
      expires: kept.expires,
      sealed: vault.seal(placeOf(id), password),
    }
    const isAdded = await stored.add(row, now(), MAX_WAITING_INVITATIONS).catch((error: unknown) => {
      password.wipe()
      this.#forget(kept)
      throw error
    })
    const hasEnded = this.#kept.get(id) !== kept
    if (isAdded && !hasEnded) {
      watch(basis)
      return { result: 'invited', invitation: kept, password }
    }
    password.wipe()
    if (hasEnded) this.#remove(id)
    else this.#forget(kept)
    return { result: isAdded ? 'not_running' : 'too_many' }
  }

  /** Lists a session's invitations: those that wait, and those whose guest is connected. */
  ofSession(session: Id): Invitation[] {
    return [...this.#kept.values()].filter((kept) => kept.session === session)
  }

  find(session: Id, id: Id): Invitation | undefined {
    const kept = this.#kept.get(id)
    return kept?.session === session ? kept : undefined
  }

  /** Finds the invitation whose password solves the VNC challenge (RFC 6143 7.2.2), for `enter`. */
  byResponse(source: Source, challenge: Uint8Array, response: Uint8Array): Promise<Id | undefined> {
    return this.#match(source, (password) =>
      sameBytes(vncAuthResponse(challenge, password.revealText()), response),
    )
  }

  async byPassword(source: Source, user: string, password: string): Promise<Id | undefined> {
    if (user !== GUEST_USER) return undefined
    const given = Buffer.from(password)
    return await this.#match(source, (own) => sameBytes(Buffer.from(own.revealText()), given))
  }

  /**
   * Lets the guest in under this token and uses up the ticket; returns a `refusal` for the guest if the session runs in
   * another broker. Rejects if the audit log cannot be written.
   */
  async enter(
    id: Id,
    source: Source,
    token: string,
  ): Promise<GuestIdentity | { refusal: string } | undefined> {
    const { stored, now } = this.#options
    const kept = this.#kept.get(id)
    if (!kept) return { refusal: ELSEWHERE }
    if (!(await stored.take(id, now()))) return undefined
    // It may have been withdrawn, or its session have ended, meanwhile.
    if (this.#kept.get(id) !== kept || kept.running.stopped !== undefined) return undefined
    kept.guest = source
    kept.token = token
    const { session, name, mode } = kept
    try {
      if ((await flawOf(kept, this.#options.grounds())) !== undefined) {
        this.#forget(kept)
        return undefined
      }
      await this.#record('session.guest_join', kept, { method: mode })
    } catch (error) {
      this.#forget(kept)
      throw error
    }
    return { session, invitation: id, name, mode }
  }

  /** Removes the invitation when the guest's connection has closed. */
  async onGuestClosed(token: string): Promise<void> {
    const kept = [...this.#kept.values()].find((one) => one.token === token)
    if (!kept) return
    this.#forget(kept)
    await this.#record('session.guest_leave', kept, {})
  }

  /** Sets the guest's rights on the request of `by`, whose sign-in rests on `basis`. */
  setMode(id: Id, mode: GuestMode, by: string, basis: Basis): void {
    const kept = this.#kept.get(id)
    if (!kept) return
    kept.mode = mode
    const [inviter] = kept.bases
    kept.bases = [inviter, basis]
    this.#options.watch(basis)
    this.#notify(kept, { mode, by })
  }

  /** Withdraws the invitation; a connected guest has to leave. */
  withdraw(id: Id, reason: string, by?: string): void {
    const kept = this.#kept.get(id)
    if (!kept) return
    kept.isWithdrawn = true
    if (kept.guest) this.#notify(kept, { out: reason, ...(by !== undefined && { by }) })
    // A connected guest is kept until the connection closes.
    else this.#forget(kept)
  }

  /** Withdraws the invitations of users who may no longer invite. */
  async review(grounds: Grounds, withdrawals: Withdrawals, touched: Touched): Promise<void> {
    const isTouched = ({ bases, isWithdrawn }: Kept) =>
      !isWithdrawn && bases.some((basis) => touched.hasBasis(basis))
    await withdrawals.each(await chosen(this.#kept.values(), isTouched), async (kept) => {
      const reason = await flawOf(kept, grounds)
      if (reason === undefined || this.#kept.get(kept.id) !== kept) return undefined
      this.withdraw(kept.id, `${kept.by} may not invite you any more`)
      return () => this.#record('session.invite_withdraw', kept, { reason })
    })
  }

  /** Yields the bases of all invitations. */
  *bases(): Iterable<Basis> {
    for (const { bases } of this.#kept.values()) yield* bases
  }

  /** Removes the session's waiting invitations; its proxy sends connected guests away. */
  onClosed(session: Id): void {
    for (const kept of this.#kept.values()) if (kept.session === session && !kept.guest) this.#forget(kept)
  }

  async #match(source: Source, isIt: (password: Secret) => boolean): Promise<Id | undefined> {
    const { stored, now } = this.#options
    const waiting = await stored.waitingFor(sameAddress(source.address), now())
    let found: Id | undefined
    // Compares with each one, so that the time does not reveal which one matched.
    for (const [at, { id, session, sealed }] of waiting.entries()) {
      if (at % COMPARED_AT_ONCE === COMPARED_AT_ONCE - 1) await nextTurn()
      const password = this.#opened(id, sealed)
      const isRight = password !== undefined && isIt(password)
      password?.wipe()
      if (isRight && this.#isOpen(id, session)) found ??= id
    }
    return found
  }

  /** Returns undefined for one that does not open, which is no reason to turn away the guests of all others. */
  #opened(id: Id, sealed: Uint8Array): Secret | undefined {
    const { vault, onUnreadable } = this.#options
    try {
      return vault.open(placeOf(id), sealed)
    } catch {
      if (this.#unreadable.has(id)) return undefined
      if (this.#unreadable.size >= MAX_WAITING_INVITATIONS) this.#unreadable.clear()
      this.#unreadable.add(id)
      onUnreadable?.(id)
      return undefined
    }
  }

  /** Whether the invitation has neither been withdrawn nor ended with its session. */
  #isOpen(id: Id, session: Id): boolean {
    const kept = this.#kept.get(id)
    return kept ? kept.running.stopped === undefined : this.#options.runsElsewhere(session)
  }

  #expired(id: Id): void {
    this.withdraw(id, 'the time of the invitation is over')
  }

  #notify({ session, id: invitation }: Kept, change: (GateNotice & { type: 'guest' })['change']): void {
    this.#options.notify({ type: 'guest', session, invitation, change })
  }

  #forget(kept: Kept): void {
    clearTimeout(kept.timer)
    this.#kept.delete(kept.id)
    if (!kept.guest) this.#remove(kept.id)
  }

  /** Removes the row of a withdrawn invitation. One that stays ends by its time. */
  #remove(id: Id): void {
    const { stored, now } = this.#options
    stored.take(id, now()).catch(() => undefined)
  }

  #record(
    code: 'session.guest_join' | 'session.guest_leave' | 'session.invite_withdraw',
    { session, by, running, guest, name, bases }: Kept,
    fields: EventFields,
  ): Promise<void> {
    const apiKey = apiKeyOf(bases[0])
    return this.#options.audit.record(code, {
      session,
      user: by,
      ...(apiKey !== undefined && { api_key: apiKey }),
      ...(guest && { client_ip: guest.address, client_port: guest.port }),
      ...targetFields(running.target),
      object_type: 'guest',
      object: name,
      ...fields,
    })
  }
}

const placeOf = (id: Id) => ({ table: 'invitations', id, field: 'password' })

async function flawOf({ bases }: Kept, grounds: Grounds): Promise<string | undefined> {
  for (const basis of bases) {
    const flaw = await grounds.flawOf(basis, basis.address)
    if (flaw !== undefined) return flaw
  }
  return undefined
}
