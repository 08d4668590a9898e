/** TLS within VeNCrypt: with a certificate as everywhere, or anonymous, which hides what is said and shows nobody. */
import {
  type ConnectionOptions,
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls'
import { SERVER_TLS } from '../net/tls.ts'

/**
 * Diffie-Hellman without any signature, which TLS 1.3 does not have; TigerVNC and gtk-vnc know some of these each. OpenSSL
 * takes them for no security at all.
 */
const ANONYMOUS = {
  ciphers:
    'ADH-AES256-GCM-SHA384:ADH-AES128-GCM-SHA256:AECDH-AES256-SHA:AECDH-AES128-SHA:ADH-AES256-SHA:@SECLEVEL=0',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const

/**
 * TLS 1.3 sends its tickets after the handshake, and TigerVNC's viewer (1.12) does not see what comes in one piece with
 * them, which is how the sign-in went. Node cannot leave them out. These of 1.2 have what 1.3 has.
 */
const WITH_CERTIFICATE = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE+AESGCM:ECDHE+CHACHA20' } as const

/** For viewers, by the certificate. Throws for files that do not go together. */
export function certificateContext(files: Pick<SecureContextOptions, 'cert' | 'key'>): SecureContext {
  return createSecureContext({ ...SERVER_TLS, ...WITH_CERTIFICATE, ...files })
}

/** For viewers, without one. */
export function anonymousContext(): SecureContext {
  return createSecureContext({ ...SERVER_TLS, ...ANONYMOUS, dhparam: 'auto' })
}

export function anonymousOptions(): ConnectionOptions {
  return ANONYMOUS
}
