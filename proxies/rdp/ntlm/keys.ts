/** NTLM's key derivation (MS-NLMP 3.4.5), and the hashes and times of its messages. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'

function md5(...parts: Uint8Array[]): Buffer {
  const hash = createHash('md5')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

export type Direction = 'client-to-server' | 'server-to-client'

/** Derives SIGNKEY and SEALKEY of one direction (3.4.5.2, 3.4.5.3), for 128 bits. */
export function directionKeys(sessionKey: Uint8Array, direction: Direction): { sign: Buffer; seal: Buffer } {
  const key = (purpose: string): Buffer =>
    md5(sessionKey, Buffer.from(`session key to ${direction} ${purpose} key magic constant\0`, 'latin1'))
  return { sign: key('signing'), seal: key('sealing') }
}

/**
 * Returns the MD5 of the channel bindings (3.1.1.2): a gss_channel_bindings_struct (RFC 2744 3.11) without
 * addresses, around `tls-server-end-point:` and the certificate's hash (RFC 5929 4).
 */
export function channelBindingsHash(certificateHash: Uint8Array): Buffer {
  const data = Buffer.concat([Buffer.from('tls-server-end-point:', 'latin1'), certificateHash])
  const head = Buffer.alloc(20)
  head.writeUInt32LE(data.length, 16)
  return md5(head, data)
}

const EPOCH_MS = 11_644_473_600_000n
const TICKS_PER_MS = 10_000n

/** Returns a FILETIME, in 100 ns since 1601, from milliseconds since 1970. */
export function fileTime(milliseconds: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE((BigInt(Math.trunc(milliseconds)) + EPOCH_MS) * TICKS_PER_MS)
  return bytes
}
