/** What TLS has in common wherever it begins, toward clients and toward targets. */
import { constants } from 'node:crypto'
import { isIP } from 'node:net'
import {
  type ConnectionOptions,
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls'

/** Toward clients. Node's own limit on renegotiations does not reach a socket that is wrapped by hand. */
export const SERVER_TLS = { minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const

/** Toward clients, by the certificate. Throws for files that do not go together. */
export function serverContext(files: Pick<SecureContextOptions, 'cert' | 'key'>): SecureContext {
  return createSecureContext({ ...SERVER_TLS, ...files })
}

/** Toward a target: what it shows is judged by whoever asks, not by authorities. */
export function certificateOptions(host: string): ConnectionOptions {
  return {
    minVersion: 'TLSv1.2',
    // Old gear has keys of 1024 bits; what is pinned is the key.
    ciphers: 'DEFAULT:@SECLEVEL=1',
    ...(isIP(host) === 0 && { servername: host }),
  }
}
