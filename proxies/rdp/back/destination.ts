/** Where a session goes: to its target, or where the target has sent it (MS-RDPBCGR 3.2.5.3.1). */
import { lookup } from 'node:dns/promises'
import { isFrom, sameAddress } from '../../../src/model/networks.ts'
import { TargetError, wordsOf } from '../../wording/errors.ts'
import type { Redirection } from '../codec/redirection.ts'

export interface Destination {
  host: string
  port: number
  /** What the connection request begins with; without CR LF. */
  routingToken?: string
}

export interface Redirected {
  /** What the user calls the target. */
  name: string
  target: Pick<Destination, 'host' | 'port'>
  /** Networks of the policy, beside the target's own address. */
  redirectTo: readonly string[]
}

/** The policy does not let a session be sent there. */
export class RedirectionRefusedError extends TargetError {
  override name = 'RedirectionRefusedError'
}

/** Bytes of a routing token that a connection request has room for. */
const TOKEN_LIMIT = 200

/**
 * A token is for whoever is asked first, as before, and it finds the server that is meant; only without one its address is.
 * The account stays the session's own, whatever the target names. Throws TargetError for what the policy does not allow.
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

/** One line of printable characters: with more, it could bring a negotiation of its own. */
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
