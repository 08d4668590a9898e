/**
 * The arithmetic of VNC authentication (RFC 6143 section 7.2.2): DES with an eight-byte key whose bits are in
 * reverse order. OpenSSL no longer has plain DES; 3DES with the same key three times is equal.
 */
import { Buffer } from 'node:buffer'
import { createCipheriv } from 'node:crypto'

/** Bytes of the challenge, and of the response. */
export const VNC_CHALLENGE_BYTES = 16
/** Significant bytes of a password. */
export const VNC_PASSWORD_BYTES = 8

/** Returns the response to the challenge; the password is cut to eight bytes of UTF-8. */
export function vncAuthResponse(challenge: Uint8Array, password: string): Buffer {
  const key = Buffer.alloc(VNC_PASSWORD_BYTES)
  Buffer.from(password, 'utf8').copy(key)
  const cipher = createCipheriv('des-ede3', vncDesKey(key), null).setAutoPadding(false)
  return Buffer.concat([cipher.update(challenge), cipher.final()])
}

/** Returns the 3DES key that is equal to VNC's DES with these eight bytes. */
export function vncDesKey(key: Uint8Array): Buffer {
  const reversed = key.subarray(0, VNC_PASSWORD_BYTES).map(reverseBits)
  return Buffer.concat([reversed, reversed, reversed])
}

function reverseBits(byte: number): number {
  let reversed = 0
  for (let bit = 0; bit < 8; bit++) reversed |= ((byte >> bit) & 1) << (7 - bit)
  return reversed
}
