/** Numbers of NTLM's messages (MS-NLMP 2.2). */

/** NEGOTIATE flags (2.2.2.5). */
export const FLAG = {
  UNICODE: 0x00000001,
  OEM: 0x00000002,
  REQUEST_TARGET: 0x00000004,
  SIGN: 0x00000010,
  SEAL: 0x00000020,
  NTLM: 0x00000200,
  ALWAYS_SIGN: 0x00008000,
  TARGET_TYPE_SERVER: 0x00020000,
  EXTENDED_SESSION_SECURITY: 0x00080000,
  TARGET_INFO: 0x00800000,
  VERSION: 0x02000000,
  KEY_128: 0x20000000,
  KEY_EXCHANGE: 0x40000000,
  KEY_56: 0x80000000,
} as const

const sum = (...flags: number[]): number => flags.reduce((all, flag) => (all | flag) >>> 0, 0)

/** Required to protect a password: RC4 with 128 bits and a new key for each session. */
export const NEEDED_FLAGS = sum(
  FLAG.UNICODE,
  FLAG.SIGN,
  FLAG.SEAL,
  FLAG.EXTENDED_SESSION_SECURITY,
  FLAG.KEY_128,
  FLAG.KEY_EXCHANGE,
)

/** Flags that this client offers. */
export const OFFERED_FLAGS = sum(
  NEEDED_FLAGS,
  FLAG.OEM,
  FLAG.REQUEST_TARGET,
  FLAG.NTLM,
  FLAG.ALWAYS_SIGN,
  FLAG.VERSION,
  FLAG.KEY_56,
)

/**
 * Flags that this server accepts from a client's offer. OEM is not among them: some clients refuse it
 * together with UNICODE.
 */
export const ACCEPTED_FLAGS = sum(
  NEEDED_FLAGS,
  FLAG.REQUEST_TARGET,
  FLAG.NTLM,
  FLAG.ALWAYS_SIGN,
  FLAG.VERSION,
  FLAG.KEY_56,
)

/** Flags that this server always sets. */
export const SERVER_FLAGS = sum(FLAG.NTLM, FLAG.TARGET_INFO, FLAG.TARGET_TYPE_SERVER, FLAG.REQUEST_TARGET)

/** Ids of the AV_PAIRs in a target info (2.2.2.1). */
export const AV = {
  END: 0,
  COMPUTER_NAME: 1,
  DOMAIN_NAME: 2,
  DNS_COMPUTER_NAME: 3,
  DNS_DOMAIN_NAME: 4,
  FLAGS: 6,
  TIMESTAMP: 7,
  TARGET_NAME: 9,
  CHANNEL_BINDINGS: 10,
} as const

/** Bit of AV.FLAGS: the message has a MIC. */
export const AV_FLAG_MIC = 2
