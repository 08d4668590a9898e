/**
 * One-time tickets, for viewers that cannot carry a name and a password: kept in memory only, each bound to the address
 * that its viewer comes from, used up by the sign-in that shows it. Whether its user may still do what it leads to is
 * asked when it is shown.
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

/** Live tickets of one user, and of all: each is one more that a guess may hit. */
export const MAX_TICKETS_PER_USER = 10
export const MAX_TICKETS = 10_000

/** Protocols with tickets. */
export type TicketProtocol = 'VNC' | 'RDP'

/** Characters: eight are all that VNC authentication looks at; what NTLM shows of a password can be tried out elsewhere. */
const PASSWORD_LENGTHS: Readonly<Record<TicketProtocol, number>> = { VNC: VNC_PASSWORD_BYTES, RDP: 24 }

export interface Ticket {
  /** Whose it is. */
  userId: Id
  /** What it was handed out upon. */
  basis: Basis
  user: string
  protocol: TicketProtocol
  /** Where the viewer has to come from. */
  address: string
  /** Milliseconds since the epoch. */
  expires: number
  /** Where it leads, and nowhere else. */
  target: Required<WantedTarget>
}

interface Kept extends Ticket {
  id: string
  password: Secret
}

/** How a viewer has come. */
interface Arrival {
  protocol: Protocol
  address: string
}

export class Tickets {
  readonly #kept = new Map<string, Kept>()

  /** The password is the caller's to wipe; undefined: too many wait. */
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

  /** The ticket by whose password a VNC challenge was answered (RFC 6143 7.2.2); its id is what `take` wants. */
  byResponse(
    arrival: Arrival,
    { challenge, response }: { challenge: Uint8Array; response: Uint8Array },
    now: number,
  ): string | undefined {
    return this.#find(arrival, now, ({ password }) =>
      sameBytes(vncAuthResponse(challenge, password.revealText()), response),
    )
  }

  /** The ticket with that password of the user of the login string, and for its target where it names one. */
  byPassword(arrival: Arrival, login: Login, password: string, now: number): string | undefined {
    const given = Buffer.from(password)
    return this.#find(
      arrival,
      now,
      (kept) => sameBytes(kept.password.reveal(), given) && isMeant(kept, login),
    )
  }

  /** The ticket by whose password an NTLM challenge was answered, as by `byPassword`, and the session's base key. */
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

  /** Uses it up. */
  take(id: string): Ticket | undefined {
    const kept = this.#kept.get(id)
    if (kept) this.#drop(kept)
    return kept
  }

  /** Those that wait now. */
  get waiting(): readonly (Ticket & { id: string })[] {
    return [...this.#kept.values()]
  }

  #find({ protocol, address }: Arrival, now: number, matches: (kept: Kept) => boolean): string | undefined {
    this.#forgetOld(now)
    const from = sameAddress(address)
    // every one is looked at: the time must not tell which it was
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

/** Whether all that the login string names is what the ticket is for. */
function leadsTo(target: Required<WantedTarget>, wanted: WantedTarget = target): boolean {
  const parts = ['account', 'domain', 'device', 'service'] as const
  return parts.every((part) => wanted[part] === undefined || nameKey(wanted[part]) === nameKey(target[part]))
}
