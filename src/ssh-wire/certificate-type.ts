/** Names of OpenSSH's certificates (PROTOCOL.certkeys). */

const OPENSSH = '@openssh.com'

/** Returns the type of certificates for keys of a type. */
export function certificateTypeOf(keyType: string): string {
  const name = keyType.endsWith(OPENSSH) ? keyType.slice(0, -OPENSSH.length) : keyType
  return `${name}-cert-v01${OPENSSH}`
}
