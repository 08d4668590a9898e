/** Settings of TLS toward clients and toward targets. */
import { constants } from 'node:crypto'
import { isIP } from 'node:net'
import {
  type ConnectionOptions,
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls'

/** Toward clients. Node's own limit on renegotiations does not apply to a socket that is wrapped by hand. */
export const SERVER_TLS = { minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const

/** Makes the context toward clients. Throws if the certificate and the key do not match. */
export function serverContext(files: Pick<SecureContextOptions, 'cert' | 'key'>): SecureContext {
  return createSecureContext({ ...SERVER_TLS, ...files })
}

/** Options toward a target: the caller checks its certificate, not the authorities. */
export function certificateOptions(host: string): ConnectionOptions {
  return {
    minVersion: 'TLSv1.2',
    // Old devices have keys of 1024 bits; the pinned key is what is verified.
    ciphers: 'DEFAULT:@SECLEVEL=1',
    ...(isIP(host) === 0 && { servername: host }),
  }
}
