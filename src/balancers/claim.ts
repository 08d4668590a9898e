/** The outcome of reading a PROXY header: the balancer's claim about a connection, or the header's fault. */

/** The client, or undefined if the balancer speaks for itself (a health check) or cannot name an address. */
export interface Claim {
  client: { address: string; port: number } | undefined
}

/** `missing`: at least as many bytes of the header are still to come. */
export type Reading = { missing: number } | { claim: Claim }

/** `missing`: the connection begins with other bytes. */
export type HeaderFault = 'missing' | 'malformed'

export class ProxyHeaderError extends Error {
  override readonly name = 'ProxyHeaderError'
  readonly fault: HeaderFault

  constructor(fault: HeaderFault, message: string) {
    super(message)
    this.fault = fault
  }
}

export function malformed(what: string): ProxyHeaderError {
  return new ProxyHeaderError('malformed', `expected a valid PROXY header, got ${what}`)
}
