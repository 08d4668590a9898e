/**
 * One-time tickets, for viewers that cannot carry a name and a password. Kept in the store, each bound to the
 * address of its viewer, used up by the sign-in. The user's right to the target is checked when the ticket is
 * used.
 */
import { ulid } from 'ulid'
import type { Basis } from '../identity/basis.ts'
import type { Login, WantedTarget } from '../model/login.ts'
import { nameKey } from '../model/names.ts'
import { sameAddress } from '../model/networks.ts'
import { judgeProof, type NtlmProof, ntHash } from '../model/ntlm-auth.ts'
import type { Id } from '../model/objects.ts'
import type { Protocol } from '../model/rights.ts'
import type { Secret } from '../model/secret.ts'
import { VNC_PASSWORD_BYTES, vncAuthResponse } from '../model/vnc-auth.ts'
import type { Store, StoredTicket, TicketRepository } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { newTicketPassword, sameBytes } from './one-time.ts'

/** Limits of valid tickets per user and in all: each more is one that a guess may hit. */
export const MAX_TICKETS_PER_USER = 10
export const MAX_TICKETS = 10_000

/** Protocols that accept tickets. */
export type TicketProtocol = 'VNC' | 'RDP'

/** Characters: VNC authentication looks at eight only; an NTLM proof can be attacked offline. */
const PASSWORD_LENGTHS: Readonly<Record<TicketProtocol, number>> = { VNC: VNC_PASSWORD_BYTES, RDP: 24 }

export interface Ticket {
  /** Owner of the ticket. */
  userId: Id
  /** Basis of the request for the ticket. */
  basis: Basis
  user: string
  protocol: TicketProtocol
  /** Address that the viewer has to connect from. */
  address: string
  /** Milliseconds since the epoch. */
  expires: number
  /** The only target that the ticket opens. */
  target: Required<WantedTarget>
  /** Set if the request came of a sign-in with a second factor. */
  hasFactor?: true
}

/** Protocol and source of a viewer's connection. */
interface Arrival {
  protocol: Protocol
  address: string
}

/** Whether the protocol accepts tickets. */
export function isOfTickets(protocol: Protocol): protocol is TicketProtocol {
  return Object.hasOwn(PASSWORD_LENGTHS, protocol)
}

export class Tickets {
  readonly #stored: TicketRepository
  readonly #vault: Pick<Vault, 'seal' | 'open'>

  constructor(stored: Store['tickets'], vault: Pick<Vault, 'seal' | 'open'>) {
    this.#stored = stored
    this.#vault = vault
  }

  /**
   * Issues a ticket; the caller wipes the password. Returns undefined if there are too many valid tickets.
   */
  async issue(ticket: Ticket, now: number): Promise<{ id: string; password: Secret } | undefined> {
    const { userId, protocol, expires, user, basis, target, hasFactor } = ticket
    const password = newTicketPassword(PASSWORD_LENGTHS[protocol])
    const id = ulid()
    const row: StoredTicket = {
      id,
      userId,
      protocol,
      address: sameAddress(ticket.address),
      expires,
      sealed: this.#vault.seal(placeOf(id), password),
      ticket: JSON.stringify({ user, basis, target, hasFactor }),
    }
    const limits = { ofUser: MAX_TICKETS_PER_USER, all: MAX_TICKETS }
    if (await this.#stored.add(row, now, limits)) return { id, password }
    password.wipe()
    return undefined
  }

  /**
   * Finds the ticket whose password solves the VNC challenge (RFC 6143 7.2.2). Returns its id, for `take`.
   */
  byResponse(
    arrival: Arrival,
    { challenge, response }: { challenge: Uint8Array; response: Uint8Array },
    now: number,
  ): Promise<string | undefined> {
    return this.#find(arrival, now, (_, password) =>
      sameBytes(vncAuthResponse(challenge, password.revealText()), response),
    )
  }

  /** Finds the ticket by its password and the login string's user and target, if the string names one. */
  byPassword(arrival: Arrival, login: Login, password: string, now: number): Promise<string | undefined> {
    const given = Buffer.from(password)
    return this.#find(
      arrival,
      now,
      (ticket, kept) => sameBytes(kept.reveal(), given) && isMeant(ticket, login),
    )
  }

  /**
   * Finds the ticket whose password proves the NTLM response, matched as by `byPassword`. Returns the session
   * base key too.
   */
  async byNtlm(
    arrival: Arrival,
    login: Login,
    proof: NtlmProof,
    now: number,
  ): Promise<{ id: string; key: Uint8Array } | undefined> {
    let key: Uint8Array | undefined
    const id = await this.#find(arrival, now, (ticket, password) => {
      const hash = ntHash(password.revealText())
      const made = judgeProof(hash, proof)
      hash.fill(0)
      const isRight = made !== undefined && isMeant(ticket, login)
      if (isRight) key = made
      return isRight
    })
    return id !== undefined && key ? { id, key } : undefined
  }

  /** Removes the ticket and returns it: to one caller only, in whichever process. */
  async take(id: string, now: number): Promise<Ticket | undefined> {
    const stored = await this.#stored.take(id, now)
    return stored && ticketOf(stored)
  }

  /** Returns the valid tickets. */
  async waiting(now: number): Promise<(Ticket & { id: string })[]> {
    return (await this.#stored.waiting(now)).map((stored) => ({ ...ticketOf(stored), id: stored.id }))
  }

  async #find(
    { protocol, address }: Arrival,
    now: number,
    matches: (ticket: Ticket, password: Secret) => boolean,
  ): Promise<string | undefined> {
    const stored = await this.#stored.waitingFor(protocol, sameAddress(address), now)
    // Compares with each one, so that the time does not reveal which one matched.
    const found = stored.filter((one) => {
      const password = this.#vault.open(placeOf(one.id), one.sealed)
      try {
        return matches(ticketOf(one), password)
      } finally {
        password.wipe()
      }
    })
    return found[0]?.id
  }
}

const placeOf = (id: string) => ({ table: 'tickets', id, field: 'password' })

function ticketOf({ userId, protocol, address, expires, ticket }: StoredTicket): Ticket {
  const kept = JSON.parse(ticket) as Pick<Ticket, 'user' | 'basis' | 'target' | 'hasFactor'>
  return { ...kept, userId, protocol: protocol as TicketProtocol, address, expires }
}

function isMeant({ user, target }: Ticket, login: Login): boolean {
  return nameKey(user) === nameKey(login.user) && leadsTo(target, login.target)
}

/** Whether the ticket is for all that the login string names. */
function leadsTo(target: Required<WantedTarget>, wanted: WantedTarget = target): boolean {
  const parts = ['account', 'domain', 'device', 'service'] as const
  return parts.every((part) => wanted[part] === undefined || nameKey(wanted[part]) === nameKey(target[part]))
}
