/**
 * One-time tickets, for viewers that cannot carry a name and a password. Kept in memory only, each bound to
 * the address of its viewer, used up by the sign-in. The user's right to the target is checked when the
 * ticket is used.
 */
import { ulid } from 'ulid'
import type { Basis } from '../identity/basis.ts'
import type { Login, WantedTarget } from '../model/login.ts'
import { nameKey } from '../model/names.ts'
import { sameAddress } from '../model/networks.ts'
import { judgeProof, type NtlmProof, ntHash } from '../model/ntlm-auth.ts'
import type { Id } from '../model/objects.ts'
import type { Protocol } from '../model/rights.ts'
import { Secret } from '../model/secret.ts'
import { VNC_PASSWORD_BYTES, vncAuthResponse } from '../model/vnc-auth.ts'
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
}

interface Kept extends Ticket {
  id: string
  password: Secret
}

/** Protocol and source of a viewer's connection. */
interface Arrival {
  protocol: Protocol
  address: string
}

export class Tickets {
  readonly #kept = new Map<string, Kept>()

  /**
   * Issues a ticket; the caller wipes the password. Returns undefined if there are too many valid tickets.
   */
  issue(ticket: Ticket, now: number): { id: string; password: Secret } | undefined {
    this.#forgetOld(now)
    const own = [...this.#kept.values()].filter(({ userId }) => userId === ticket.userId)
    if (own.length >= MAX_TICKETS_PER_USER || this.#kept.size >= MAX_TICKETS) return undefined
    const password = newTicketPassword(PASSWORD_LENGTHS[ticket.protocol])
    const id = ulid()
    const address = sameAddress(ticket.address)
    this.#kept.set(id, { ...ticket, address, id, password })
    return { id, password: Secret.of(password.revealText()) }
  }

  /**
   * Finds the ticket whose password solves the VNC challenge (RFC 6143 7.2.2). Returns its id, for `take`.
   */
  byResponse(
    arrival: Arrival,
    { challenge, response }: { challenge: Uint8Array; response: Uint8Array },
    now: number,
  ): string | undefined {
    return this.#find(arrival, now, ({ password }) =>
      sameBytes(vncAuthResponse(challenge, password.revealText()), response),
    )
  }

  /** Finds the ticket by its password and the login string's user and target, if the string names one. */
  byPassword(arrival: Arrival, login: Login, password: string, now: number): string | undefined {
    const given = Buffer.from(password)
    return this.#find(
      arrival,
      now,
      (kept) => sameBytes(kept.password.reveal(), given) && isMeant(kept, login),
    )
  }

  /**
   * Finds the ticket whose password proves the NTLM response, matched as by `byPassword`. Returns the session
   * base key too.
   */
  byNtlm(
    arrival: Arrival,
    login: Login,
    proof: NtlmProof,
    now: number,
  ): { id: string; key: Uint8Array } | undefined {
    let key: Uint8Array | undefined
    const id = this.#find(arrival, now, (kept) => {
      const hash = ntHash(kept.password.revealText())
      const made = judgeProof(hash, proof)
      hash.fill(0)
      const isRight = made !== undefined && isMeant(kept, login)
      if (isRight) key = made
      return isRight
    })
    return id !== undefined && key ? { id, key } : undefined
  }

  /** Removes the ticket and returns it. */
  take(id: string): Ticket | undefined {
    const kept = this.#kept.get(id)
    if (kept) this.#drop(kept)
    return kept
  }

  /** The valid tickets. */
  get waiting(): readonly (Ticket & { id: string })[] {
    return [...this.#kept.values()]
  }

  #find({ protocol, address }: Arrival, now: number, matches: (kept: Kept) => boolean): string | undefined {
    this.#forgetOld(now)
    const from = sameAddress(address)
    // Compares with each one, so that the time does not reveal which one matched.
    const found = [...this.#kept.values()].filter(
      (kept) => kept.protocol === protocol && kept.address === from && matches(kept),
    )
    return found[0]?.id
  }

  #forgetOld(now: number): void {
    for (const kept of this.#kept.values()) if (kept.expires <= now) this.#drop(kept)
  }

  #drop({ id, password }: Kept): void {
    password.wipe()
    this.#kept.delete(id)
  }
}

function isMeant({ user, target }: Ticket, login: Login): boolean {
  return nameKey(user) === nameKey(login.user) && leadsTo(target, login.target)
}

/** Whether the ticket is for all that the login string names. */
function leadsTo(target: Required<WantedTarget>, wanted: WantedTarget = target): boolean {
  const parts = ['account', 'domain', 'device', 'service'] as const
  return parts.every((part) => wanted[part] === undefined || nameKey(wanted[part]) === nameKey(target[part]))
}
