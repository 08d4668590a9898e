/** A session's destination: its target, or the server that the target redirects to (MS-RDPBCGR 3.2.5.3.1). */
import { lookup } from 'node:dns/promises'
import { isFrom, sameAddress } from '../../../src/model/networks.ts'
import { TargetError, wordsOf } from '../../wording/errors.ts'
import type { Redirection } from '../codec/redirection.ts'

export interface Destination {
  host: string
  port: number
  /** First line of the connection request, without CR LF. */
  routingToken?: string
}

export interface Redirected {
  /** The target's name for the user. */
  name: string
  target: Pick<Destination, 'host' | 'port'>
  /** Networks allowed by the policy, beside the target's own address. */
  redirectTo: readonly string[]
}

/** The policy does not allow this redirection. */
export class RedirectionRefusedError extends TargetError {
  override name = 'RedirectionRefusedError'
}

/** Bytes of a routing token that fit in a connection request. */
const TOKEN_LIMIT = 200

/**
 * With a token, connects to the target again, and the token leads to the server; otherwise connects to the
 * given address. The account stays the session's own, whatever the redirection names. Throws TargetError if
 * the policy does not allow it.
 */
export async function destinationOf(
  { address, routingToken }: Redirection,
  { name, target, redirectTo }: Redirected,
): Promise<Destination> {
  const { host, port } = target
  if (routingToken !== undefined) return { host, port, routingToken: tokenOf(routingToken, name) }
  if (address === undefined) {
    throw new RedirectionRefusedError(`${name} sends the session elsewhere and does not say where`)
  }
  const isOwn = (await addressesOf(host)).some((own) => own === sameAddress(address))
  if (isOwn || (redirectTo.length > 0 && isFrom(address, redirectTo))) return { host: address, port }
  throw new RedirectionRefusedError(
    `${name} sends the session to ${wordsOf(address)}, which is not in redirect_to of the connection policy`,
  )
}

/** Accepts one line of printable characters: more could add a negotiation of its own to the request. */
function tokenOf(routingToken: string, name: string): string {
  const token = routingToken.replace(/\r\n$/, '')
  if (/^[\x20-\x7e]+$/.test(token) && token.length <= TOKEN_LIMIT) return token
  throw new RedirectionRefusedError(
    `${name} sends the session elsewhere by a routing token of ${token.length} bytes, and one line of at most ${TOKEN_LIMIT} characters was expected`,
  )
}

async function addressesOf(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true }).catch(() => [])
  return found.map(({ address }) => sameAddress(address))
}
