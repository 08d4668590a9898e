/** Finds the address of a TACACS+ server, and holds it to private networks: the protocol protects nothing by itself. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isFrom, plainAddress } from '../../../model/networks.ts'
import { TacacsError } from './packet.ts'

/** RFC 1918, RFC 4193, loopback and link-local addresses. */
const PRIVATE = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '::1',
  'fc00::/7',
  'fe80::/10',
]
/** Addresses of one name that are tried. */
const MAX_ADDRESSES = 8

/** Whether an address belongs to a private network. */
export const isPrivate = (address: string): boolean => isFrom(plainAddress(address), PRIVATE)

/**
 * Returns the addresses that may be connected to, resolved now: the connection goes to these and not to the name again,
 * which could have changed meanwhile (DNS rebinding). @throws TacacsError
 */
export async function allowedAddresses(host: string, allowPublicNetworks: boolean): Promise<string[]> {
  const found = isIP(host) ? [host] : (await lookup(host, { all: true })).map(({ address }) => address)
  const allowed = allowPublicNetworks ? found : found.filter(isPrivate)
  if (allowed.length === 0)
    throw new TacacsError(
      `expected an address of a private network, got ${found.join(', ')}: TACACS+ is not encrypted; reach it through a tunnel, or set \`allow_public_networks\``,
    )
  return allowed.slice(0, MAX_ADDRESSES)
}
