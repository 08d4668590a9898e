/**
 * The arithmetic of VNC authentication (RFC 6143 section 7.2.2): DES under a key of eight bytes whose bits stand in
 * reverse order. Where OpenSSL has no DES by itself any more, 3DES with one key three times is the same.
 */
import { Buffer } from 'node:buffer'
import { createCipheriv } from 'node:crypto'

/** Bytes of the challenge, and of the response to it. */
export const VNC_CHALLENGE_BYTES = 16
/** Bytes of a password that count. */
export const VNC_PASSWORD_BYTES = 8

/** What answers the challenge; the password is cut to eight bytes of UTF-8. */
export function vncAuthResponse(challenge: Uint8Array, password: string): Buffer {
  const key = Buffer.alloc(VNC_PASSWORD_BYTES)
  Buffer.from(password, 'utf8').copy(key)
  const cipher = createCipheriv('des-ede3', vncDesKey(key), null).setAutoPadding(false)
  return Buffer.concat([cipher.update(challenge), cipher.final()])
}

/** A key of 3DES that does what VNC's DES does with these eight bytes. */
export function vncDesKey(key: Uint8Array): Buffer {
  const reversed = key.subarray(0, VNC_PASSWORD_BYTES).map(reverseBits)
  return Buffer.concat([reversed, reversed, reversed])
}

function reverseBits(byte: number): number {
  let reversed = 0
  for (let bit = 0; bit < 8; bit++) reversed |= ((byte >> bit) & 1) << (7 - bit)
  return reversed
}
