/** One-time codes by time (RFC 6238), as all authenticators know them: HMAC-SHA-1, six digits, 30 seconds. */
import { createHmac, timingSafeEqual } from 'node:crypto'

export const STEP_MS = 30_000
const DIGITS = 6
/** Steps that a clock may be off, learned from the codes that were right. */
export const MAX_DRIFT = 2
/** Steps around the learned drift in which a code counts. */
const WINDOW = 1

/** Returns the number of the time step; `now` is milliseconds since the epoch. */
export const stepAt = (now: number): number => Math.floor(now / STEP_MS)

/** Returns the code of a step (RFC 4226, section 5.3). */
export function codeOf(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const hmac = createHmac('sha1', secret).update(counter).digest()
  const at = hmac[hmac.length - 1]! & 0x0f
  return String((hmac.readUInt32BE(at) & 0x7fff_ffff) % 10 ** DIGITS).padStart(DIGITS, '0')
}

/**
 * Finds the step that a code is of, after `lastStep`, near to now by the learned drift; undefined if there is none.
 * Computes the same for every text of six digits. Returns the drift to be learned, too.
 */
export function stepOfCode(
  secret: Uint8Array,
  code: string,
  { now, drift, lastStep }: { now: number; drift: number; lastStep: number },
): { step: number; drift: number } | undefined {
  if (!/^\d{6}$/.test(code)) return undefined
  const given = Buffer.from(code)
  let found: { step: number; drift: number } | undefined
  for (let by = -WINDOW; by <= WINDOW; by++) {
    const step = stepAt(now) + drift + by
    const isEqual = step >= 0 && timingSafeEqual(given, Buffer.from(codeOf(secret, step)))
    if (isEqual && lastStep < step) {
      found ??= { step, drift: Math.max(-MAX_DRIFT, Math.min(MAX_DRIFT, drift + by)) }
    }
  }
  return found
}

/**
 * Returns the URI by which authenticators take the secret over (Key URI format of Google Authenticator). The rest is as
 * by default there, and left out: the shorter the text, the smaller its QR code.
 */
export function keyUri(issuer: string, user: string, secret: string): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(user)}`
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}`
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Encodes bytes in groups of five (RFC 4648, section 6): their number has to be a multiple of five. */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    bits += 8
    for (; bits >= 5; bits -= 5) text += ALPHABET[(held >> (bits - 5)) & 31]
    held &= (1 << bits) - 1
  }
  return text
}
