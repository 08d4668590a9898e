/** Numbers of the handshake: RFC 6143 section 7.1, and the community specification for later ones. */

/** Security types, as both sides list them. */
export const SECURITY = {
  NONE: 1,
  VNC_AUTH: 2,
  RA2: 5,
  TIGHT: 16,
  VENCRYPT: 19,
  APPLE_DH: 30,
  MS_LOGON_II: 113,
  RA2_256: 129,
} as const

/** Sub-types within VeNCrypt. */
export const VENCRYPT = {
  PLAIN: 256,
  TLS_NONE: 257,
  TLS_VNC: 258,
  TLS_PLAIN: 259,
  X509_NONE: 260,
  X509_VNC: 261,
  X509_PLAIN: 262,
} as const

/** Authentication within Tight. */
export const TIGHT_AUTH = { NONE: 1, VNC: 2, UNIX_LOGIN: 129 } as const

/** The result at the end of the handshake. */
export const RESULT = { OK: 0, FAILED: 1, TOO_MANY: 2 } as const

/** The version of VeNCrypt in use: 0.2. */
export const VENCRYPT_VERSION = [0, 2] as const
