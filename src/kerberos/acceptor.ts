/** The service's side of Kerberos: a client shows a ticket for a service of ours, and proves that it is its own. */
import type { Buffer } from 'node:buffer'
import { randomInt } from 'node:crypto'
import { type Delegated, readDelegated } from './delegated.ts'
import { IntegrityError } from './encryption.ts'
import { type Authenticator, apReply, readApRequest, readAuthenticator } from './exchange.ts'
import { frameOf, KIND, readFirstToken, readFlagsChecksum } from './gss.ts'
import type { KeytabEntry } from './keytab.ts'
import { MessageTokens } from './message-tokens.ts'
import type { Key, TicketPart } from './messages.ts'
import type { Replays } from './replays.ts'
import { isSame, keysOf, openTicket, SKEW_MS } from './tickets.ts'

const MAX_FIRST = 2 ** 30

/** A ticket that is not accepted. The message is for administrators: clients get the same answer for all. */
export class TicketRefusal extends Error {
  override name = 'TicketRefusal'
}

export interface AcceptorOptions {
  realm: string
  /** First component of the services whose tickets are taken: `host` for SSH, `HTTP` for the API. */
  service: string
  keys: readonly KeytabEntry[]
  replays: Replays
  /** Whether a delegated ticket is read; if not, it is left where it is. */
  takesDelegated?: boolean
  /** Milliseconds since the epoch. */
  now: () => number
}

/** A client that has proved itself. */
export interface Accepted {
  /** Components of the client's name in the realm. */
  client: string[]
  /** Token for the client, which proves us; absent if the client does not ask for it. */
  answer?: Buffer
  /** Messages under the key of the context. */
  tokens: MessageTokens
  /** The ticket by which we may act for the client, if one came that can be used. Its key is the caller's to wipe. */
  delegated?: Delegated
  /** Wipes the key of the context. */
  close: () => void
}

/** Judges the first token of a client. @throws TicketRefusal, MalformedError, IntegrityError */
export function acceptToken(token: Uint8Array, options: AcceptorOptions): Accepted {
  const { now, replays } = options
  const request = readApRequest(readFirstToken(token))
  if (request.isUserToUser) throw new TicketRefusal('tickets between users are not taken')
  const { ticket } = request
  const part = opened(ticket, options)
  const used: Key[] = [part.key]
  const wipe = () => {
    for (const { bytes } of used) bytes.fill(0)
  }
  try {
    const proof = readAuthenticator(request.sealed, part.key)
    if (proof.key) used.push(proof.key)
    const { isMutual, delegated } = readFlagsChecksum(proof.checksum)
    const wantsAnswer = isMutual || request.wantsAnswer
    requireCurrent(part, proof, options)
    const client = part.client.join('/')
    const flaw = replays.flawOf(request.sealed.bytes, client, proof.time + proof.micros / 1000, now())
    if (flaw) throw new TicketRefusal(flaw)
    const own = randomInt(MAX_FIRST)
    const forwarded = delegated && options.takesDelegated && readDelegated(delegated, used, part)
    const tokens = new MessageTokens({
      side: 'acceptor',
      key: proof.key ?? part.key,
      isAcceptorKey: false,
      first: { own, peer: proof.first },
    })
    return {
      client: part.client,
      ...(wantsAnswer && { answer: frameOf(KIND.AP_REP, apReply(proof, part.key, own)) }),
      tokens,
      ...(forwarded && { delegated: forwarded }),
      close: wipe,
    }
  } catch (error) {
    wipe()
    throw error
  }
}

/** Returns the realm of the ticket in a first token, as the client says. @throws MalformedError */
export const realmOfToken = (token: Uint8Array): string => readApRequest(readFirstToken(token)).ticket.realm

function opened(ticket: Parameters<typeof openTicket>[0], { realm, service, keys }: AcceptorOptions) {
  const name = `${ticket.service.join('/')}@${ticket.realm}`
  if (ticket.realm !== realm || ticket.service.length !== 2 || ticket.service[0] !== service)
    throw new TicketRefusal(`a ticket for ${service}/…@${realm} was expected, got one for ${name}`)
  const { fitting, flaw } = keysOf(ticket, keys, ticket)
  if (flaw) throw new TicketRefusal(flaw)
  const part = openTicket(ticket, fitting)
  if (!part) throw new IntegrityError()
  return part
}

function requireCurrent(
  part: TicketPart,
  { realm, client, time, micros }: Authenticator,
  options: AcceptorOptions,
): void {
  const now = options.now()
  if (part.realm !== options.realm)
    throw new TicketRefusal(`a client of ${options.realm} was expected, got one of ${part.realm}`)
  if (realm !== part.realm || !isSame(client, part.client))
    throw new TicketRefusal('the ticket is of another client than its proof')
  const ahead = time + micros / 1000 - now
  const seconds = Math.round(ahead / 1000)
  if (Math.abs(ahead) > SKEW_MS)
    throw new TicketRefusal(
      `the client's clock is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} ours: set both clocks by the same time server`,
    )
  if (part.isInvalid || part.startTime - SKEW_MS > now || part.endTime + SKEW_MS < now)
    throw new TicketRefusal('the ticket has expired, or is not valid yet')
}
