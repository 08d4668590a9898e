/**
 * Guests of running sessions: invitations, each with a ticket that signs in once, kept in memory only. The session's
 * proxy has the guests; here is who may come in, for how long, and what they may do.
 */
import { ulid } from 'ulid'
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { GateNotice, GuestIdentity, Source } from '../contract/gate.ts'
import { apiKeyOf, type Basis, type Grounds } from '../identity/basis.ts'
import { plainAddress } from '../model/networks.ts'
import type { Id } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import { vncAuthResponse } from '../model/vnc-auth.ts'
import { newTicketPassword, sameBytes } from './one-time.ts'
import { type RunningSession, targetFields } from './running.ts'
import type { Withdrawals } from './withdrawals.ts'

/** Invitations of a session that wait, or whose guest is in. */
export const MAX_INVITATIONS = 8
/** Whom guests sign in as where their viewer asks for a user name. */
export const GUEST_USER = 'guest'

export type GuestMode = 'view' | 'control'

export interface Invitation {
  id: Id
  session: Id
  /** How the others see the guest. */
  name: string
  mode: GuestMode
  /** Who has invited them. */
  by: string
  /** Where their viewer has to come from. */
  address?: string
  /** Milliseconds since the epoch: until then the ticket is good, and the guest may stay. */
  expires: number
  /** The guest is in, or was let in just now: their viewer's address. */
  guest?: Source
}

interface Kept extends Invitation {
  session: Id
  running: RunningSession
  password: Secret
  /** What those rest on who have said what the guest may do: who invited them comes first. */
  bases: [Basis, ...Basis[]]
  timer: NodeJS.Timeout
  /** Of the guest's identity, once they have signed in. */
  token?: string
  /** It is no longer good, and its guest has been told to leave. */
  isWithdrawn?: true
}

export interface InvitationsOptions {
  audit: Audit
  notify: (notice: GateNotice) => void
  grounds: () => Grounds
  now: () => number
}

export type InviteRequest = Pick<Invitation, 'name' | 'mode' | 'by' | 'address'> & {
  /** What `by` has the right upon. */
  basis: Basis
  /** Milliseconds. */
  duration: number
}

export type InviteAnswer =
  | { result: 'invited'; invitation: Invitation; password: Secret }
  | { result: 'not_running' }
  /** It is no desktop, or nothing of it may be shown before its recording is on the disk. */
  | { result: 'not_shareable' }
  | { result: 'too_many' }

export class Invitations {
  readonly #options: InvitationsOptions
  readonly #kept = new Map<Id, Kept>()

  constructor(options: InvitationsOptions) {
    this.#options = options
  }

  /** The password is for this once; undefined: the session has as many as it may have. */
  invite(
    running: RunningSession,
    request: InviteRequest,
  ): { invitation: Invitation; password: Secret } | undefined {
    if (this.ofSession(running.id).length >= MAX_INVITATIONS) return undefined
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
      expires: this.#options.now() + duration,
      running,
      password,
      bases: [basis],
      timer,
    }
    this.#kept.set(id, kept)
    return { invitation: kept, password }
  }

  /** Those that wait, and those whose guest is in. */
  ofSession(session: Id): Invitation[] {
    return [...this.#kept.values()].filter((kept) => kept.session === session)
  }

  find(session: Id, id: Id): Invitation | undefined {
    const kept = this.#kept.get(id)
    return kept?.session === session ? kept : undefined
  }

  /** The invitation by whose password a VNC challenge was answered (RFC 6143 7.2.2), for `enter`. */
  byResponse(source: Source, challenge: Uint8Array, response: Uint8Array): Id | undefined {
    return this.#match(source, ({ password }) =>
      sameBytes(vncAuthResponse(challenge, password.revealText()), response),
    )
  }

  byPassword(source: Source, user: string, password: string): Id | undefined {
    if (user !== GUEST_USER) return undefined
    const given = Buffer.from(password)
    return this.#match(source, (kept) => sameBytes(Buffer.from(kept.password.revealText()), given))
  }

  /** Lets the guest in under this token; the ticket is used up. Rejects when the audit log cannot be written. */
  async enter(id: Id, source: Source, token: string): Promise<GuestIdentity | undefined> {
    const kept = this.#kept.get(id)
    if (!kept || kept.guest) return undefined
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

  /** The guest's connection is gone. */
  async onGuestClosed(token: string): Promise<void> {
    const kept = [...this.#kept.values()].find((one) => one.token === token)
    if (!kept) return
    this.#forget(kept)
    await this.#record('session.guest_leave', kept, {})
  }

  /** What the guest may do from now on; `by` has said so, upon `basis`. */
  setMode(id: Id, mode: GuestMode, by: string, basis: Basis): void {
    const kept = this.#kept.get(id)
    if (!kept) return
    kept.mode = mode
    const [inviter] = kept.bases
    kept.bases = [inviter, basis]
    this.#notify(kept, { mode, by })
  }

  /** It is no longer good; a guest who is in has to leave. */
  withdraw(id: Id, reason: string, by?: string): void {
    const kept = this.#kept.get(id)
    if (!kept) return
    kept.isWithdrawn = true
    if (kept.guest) this.#notify(kept, { out: reason, ...(by !== undefined && { by }) })
    // A guest who is in is kept until their connection is gone.
    else this.#forget(kept)
  }

  /** Withdraws those that somebody has given who may not any more. */
  async review(grounds: Grounds, withdrawals: Withdrawals): Promise<void> {
    await withdrawals.each(this.#kept.values(), async (kept) => {
      const reason = kept.isWithdrawn ? undefined : await flawOf(kept, grounds)
      if (reason === undefined || this.#kept.get(kept.id) !== kept) return undefined
      this.withdraw(kept.id, `${kept.by} may not invite you any more`)
      return () => this.#record('session.invite_withdraw', kept, { reason })
    })
  }

  /** What all of them rest on. */
  *bases(): Iterable<Basis> {
    for (const { bases } of this.#kept.values()) yield* bases
  }

  /** The session has ended: its proxy sends the guests away. */
  onClosed(session: Id): void {
    for (const kept of this.#kept.values()) if (kept.session === session && !kept.guest) this.#forget(kept)
  }

  #match(source: Source, isIt: (kept: Kept) => boolean): Id | undefined {
    const from = plainAddress(source.address)
    // Every one is looked at: the time must not tell which it was.
    const found = [...this.#kept.values()].filter(
      (kept) =>
        isIt(kept) &&
        kept.guest === undefined &&
        kept.running.stopped === undefined &&
        (kept.address === undefined || kept.address === from),
    )
    return found[0]?.id
  }

  #expired(id: Id): void {
    this.withdraw(id, 'the time of the invitation is over')
  }

  #notify({ session, id: invitation }: Kept, change: (GateNotice & { type: 'guest' })['change']): void {
    this.#options.notify({ type: 'guest', session, invitation, change })
  }

  #forget(kept: Kept): void {
    clearTimeout(kept.timer)
    kept.password.wipe()
    this.#kept.delete(kept.id)
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

async function flawOf({ bases }: Kept, grounds: Grounds): Promise<string | undefined> {
  for (const basis of bases) {
    const flaw = await grounds.flawOf(basis, basis.address)
    if (flaw !== undefined) return flaw
  }
  return undefined
}
