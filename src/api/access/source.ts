/** Where a request came from: its connection, or the client that a trusted proxy names. */
import type { IncomingMessage } from 'node:http'
import { forwardedFor } from '../../balancers/forwarded.ts'
import { plainAddress } from '../../model/networks.ts'
import type { RequestSource } from './caller.ts'

/** Returns an empty source if the connection has closed. */
export function sourceOf({ socket, headers }: IncomingMessage, trusted: readonly string[]): RequestSource {
  const { remoteAddress, remotePort } = socket
  if (remoteAddress === undefined) return {}
  const peer = plainAddress(remoteAddress)
  // Node joins repeated headers of this name, in their order.
  const address = forwardedFor(peer, headers['x-forwarded-for'] as string | undefined, trusted)
  const isOwn = address === peer && remotePort !== undefined
  return { address, ...(isOwn && { port: remotePort }) }
}
