/** The client of an HTTP request that came through proxies, by X-Forwarded-For. */
import { isIP } from 'node:net'
import { isFrom, sameAddress } from '../model/networks.ts'

/** Proxies in a row; a longer list is not followed. */
const MAX_HOPS = 32
/** The forms in which proxies write an address: with a port too, and in brackets. */
const ENTRY = /^(?:\[(?<bracketed>[^\]]*)\]|(?<four>\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/

/**
 * Returns the address of the client: that of the connection, unless it is a trusted proxy's; then the header is read
 * from its end, where each proxy adds the address that it was reached from, up to the first address that is no
 * trusted proxy's. At an entry that is no address the last proxy itself counts as the client.
 */
export function forwardedFor(
  connection: string,
  header: string | undefined,
  trusted: readonly string[],
): string {
  let client = connection
  const entries = header?.split(',') ?? []
  for (let hop = 0; hop < MAX_HOPS && isTrusted(client, trusted); hop++) {
    const next = addressIn(entries.pop() ?? '')
    if (next === undefined) break
    client = next
  }
  return client
}

/** Whether the address is in one of the networks; never without networks. */
export function isTrusted(address: string, networks: readonly string[]): boolean {
  return networks.length > 0 && isFrom(address, networks)
}

function addressIn(entry: string): string | undefined {
  const text = entry.trim()
  const { bracketed, four } = ENTRY.exec(text)?.groups ?? {}
  const address = bracketed ?? four ?? text
  // A zone is of no meaning on another machine.
  return isIP(address) === 0 || address.includes('%') ? undefined : sameAddress(address)
}
