/**
 * Repeated requests for the sign-in service (RFC 4253 10). ssh2 handles the first one, but would end the
 * connection at the next: paramiko sends one before each method that it tries.
 */
import { Buffer } from 'node:buffer'
import { MAX_AUTH_REQUESTS } from './limits.ts'

/** byte 5 or 6, string service name. */
const REQUEST = Buffer.from('\x05\0\0\0\x0cssh-userauth', 'latin1')
export const SERVICE_ACCEPT = Buffer.from('\x06\0\0\0\x0cssh-userauth', 'latin1')

export class ServiceRequests {
  #count = 0

  /** Whether a payload is a repeated request, which is only accepted again. */
  isRepeated(payload: Buffer): boolean {
    if (!REQUEST.equals(payload)) return false
    this.#count++
    return this.#count > 1 && this.#count <= MAX_AUTH_REQUESTS
  }
}
