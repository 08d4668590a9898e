/**
 * Kerberos inside SPNEGO (RFC 4178), as browsers show tickets (RFC 4559): one token each way, as the client's first
 * choice has to be Kerberos, with its token.
 */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { buildResponse, parseInit, STATE } from '../../proxies/bytes/spnego.ts'
import { type Accepted, type AcceptorOptions, acceptToken, realmOfToken, TicketRefusal } from './acceptor.ts'
import { KERBEROS_OID, MAX_TOKEN } from './gss.ts'

/** 1.2.840.48018.1.2.2, in DER: Kerberos as Windows has numbered it by mistake, and lists it first. */
const WINDOWS_OID = Buffer.from('06092a864882f712010202', 'hex')

/** Judges a token as `acceptToken` does. @throws TicketRefusal, MalformedError, IntegrityError */
export function acceptNegotiate(
  bytes: Uint8Array,
  options: AcceptorOptions,
): Omit<Accepted, 'answer'> & { answer: Buffer } {
  const { mechanism, token } = firstChoice(bytes)
  const accepted = acceptToken(token, options)
  return {
    ...accepted,
    answer: buildResponse({ state: STATE.COMPLETED, mechanism, token: accepted.answer }),
  }
}

/** Returns the realm of the ticket, as the client says. @throws TicketRefusal, MalformedError */
export const realmOfNegotiate = (bytes: Uint8Array): string => realmOfToken(firstChoice(bytes).token)

function firstChoice(bytes: Uint8Array): { mechanism: Uint8Array; token: Uint8Array } {
  if (bytes.length > MAX_TOKEN)
    throw new MalformedError(`a token of at most ${MAX_TOKEN} bytes was expected, got ${bytes.length}`)
  const { mechanisms, token } = parseInit(bytes)
  const mechanism = mechanisms[0]
  const isKerberos = mechanism && [KERBEROS_OID, WINDOWS_OID].some((oid) => oid.equals(mechanism))
  if (!isKerberos || !token)
    throw new TicketRefusal('Kerberos was expected as the first choice of the client, with its token')
  return { mechanism, token }
}
