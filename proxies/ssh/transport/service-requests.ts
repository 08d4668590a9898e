/**
 * Requests for the sign-in service (RFC 4253 10) after the first, which is ssh2's: paramiko makes one before each
 * method that it tries, and ssh2 would end the connection.
 */
import { Buffer } from 'node:buffer'
import { MAX_AUTH_REQUESTS } from './limits.ts'

/** byte 5 or 6, string service name. */
const REQUEST = Buffer.from('\x05\0\0\0\x0cssh-userauth', 'latin1')
export const SERVICE_ACCEPT = Buffer.from('\x06\0\0\0\x0cssh-userauth', 'latin1')

export class ServiceRequests {
  #count = 0

  /** True for one that is only to be accepted again. */
  isRepeated(payload: Buffer): boolean {
    if (!REQUEST.equals(payload)) return false
    this.#count++
    return this.#count > 1 && this.#count <= MAX_AUTH_REQUESTS
  }
}
