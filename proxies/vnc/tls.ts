/**
 * TLS within VeNCrypt: with a certificate, or anonymous, which encrypts without authenticating the server.
 */
import {
  type ConnectionOptions,
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls'
import { SERVER_TLS } from '../net/tls.ts'

/**
 * Unsigned Diffie-Hellman, which TLS 1.3 does not have; TigerVNC and gtk-vnc support some of these each.
 * OpenSSL rates them at security level 0.
 */
const ANONYMOUS = {
  ciphers:
    'ADH-AES256-GCM-SHA384:ADH-AES128-GCM-SHA256:AECDH-AES256-SHA:AECDH-AES128-SHA:ADH-AES256-SHA:@SECLEVEL=0',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const

/**
 * TLS 1.3 sends its tickets after the handshake, and TigerVNC's viewer (1.12) misses data that arrives in one
 * piece with them: the result of the sign-in. Node cannot omit them. These ciphers of 1.2 match those of 1.3.
 */
const WITH_CERTIFICATE = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE+AESGCM:ECDHE+CHACHA20' } as const

/**
 * Makes the context toward viewers, by the certificate. Throws if the certificate and the key do not match.
 */
export function certificateContext(files: Pick<SecureContextOptions, 'cert' | 'key'>): SecureContext {
  return createSecureContext({ ...SERVER_TLS, ...WITH_CERTIFICATE, ...files })
}

/** Makes the context toward viewers, without a certificate. */
export function anonymousContext(): SecureContext {
  return createSecureContext({ ...SERVER_TLS, ...ANONYMOUS, dhparam: 'auto' })
}

export function anonymousOptions(): ConnectionOptions {
  return ANONYMOUS
}
