/**
 * Broken or weak SSH algorithms, which are all that some old network gear supports. A connection policy lists
 * those that it allows towards its targets; nothing else uses them.
 */
export const LEGACY_KEX = [
  'diffie-hellman-group-exchange-sha256',
  'diffie-hellman-group14-sha1',
  'diffie-hellman-group-exchange-sha1',
  'diffie-hellman-group1-sha1',
] as const
export const LEGACY_HOST_KEYS = ['ssh-rsa', 'ssh-dss'] as const
export const LEGACY_CIPHERS = ['aes256-cbc', 'aes192-cbc', 'aes128-cbc', '3des-cbc'] as const
export const LEGACY_MACS = ['hmac-sha1', 'hmac-sha1-96', 'hmac-md5'] as const

export const LEGACY_ALGORITHMS = [
  ...LEGACY_KEX,
  ...LEGACY_HOST_KEYS,
  ...LEGACY_CIPHERS,
  ...LEGACY_MACS,
] as const
export type LegacyAlgorithm = (typeof LEGACY_ALGORITHMS)[number]
