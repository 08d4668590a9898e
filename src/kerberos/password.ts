/**
 * A password proved by a KDC, and the KDC by a ticket for a service of ours: whoever answers in the KDC's place can
 * accept every password, but cannot make a ticket that our keytab opens.
 */
import type { KeytabEntry } from './keytab.ts'
import { readTicket } from './messages.ts'
import { UnprovedKdcError } from './refusals.ts'
import {
  firstTicket,
  type HeldTicket,
  type KdcAccess,
  type Login,
  requireClient,
  serviceTicket,
} from './requests.ts'
import { keysOf, openTicket, SKEW_MS } from './tickets.ts'

export interface PasswordProof extends Login, KdcAccess {
  /** Components of the service's name, such as `host` and `bastion.example.org`. */
  service: readonly string[]
  keys: readonly KeytabEntry[]
}

/** Returns the components of a service's name, which may end with its realm. */
export function serviceOf(principal: string, realm: string): string[] {
  const ending = `@${realm}`
  return (principal.endsWith(ending) ? principal.slice(0, -ending.length) : principal).split('/')
}

/**
 * Resolves if the KDC accepts the password, and is proved.
 * @throws KdcRefusal if it refuses, UnprovedKdcError, MalformedError, and errors of `ask`
 */
export async function provePassword(proof: PasswordProof): Promise<void> {
  const first = await firstTicket(proof, proof)
  try {
    const own = await serviceTicket(first, proof.service, proof)
    try {
      requireProved(proof, own)
    } finally {
      own.key.bytes.fill(0)
    }
  } finally {
    first.key.bytes.fill(0)
  }
}

function requireProved(proof: PasswordProof, own: HeldTicket): void {
  const ticket = readTicket(own.ticket)
  const name = `${proof.service.join('/')}@${proof.realm}`
  const { fitting, flaw } = keysOf(proof, proof.keys, ticket)
  if (flaw) throw new UnprovedKdcError(flaw)
  const content = openTicket(ticket, fitting)
  if (!content)
    throw new UnprovedKdcError(
      `the ticket for ${name} was not made with the key of the keytab: export the keytab again; if it is the current one, another machine answers in the KDC's place`,
    )
  requireClient(own, content)
  const isOwn = content.key.bytes.equals(own.key.bytes)
  content.key.bytes.fill(0)
  if (!isOwn) throw new UnprovedKdcError('the ticket is not the one of this answer')
  if (content.endTime + SKEW_MS < proof.now()) throw new UnprovedKdcError('the ticket has expired')
}
