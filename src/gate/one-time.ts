/** Passwords that sign in once. */
import { randomInt, timingSafeEqual } from 'node:crypto'
import { Secret } from '../model/secret.ts'
import { VNC_PASSWORD_BYTES } from '../model/vnc-auth.ts'

/** Without what looks alike: 57 characters, so that eight are worth 46 bits. */
const CHARACTERS = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Of eight characters, unless a protocol takes more. */
export function newTicketPassword(length = VNC_PASSWORD_BYTES): Secret {
  return Secret.of(Array.from({ length }, () => CHARACTERS[randomInt(CHARACTERS.length)]).join(''))
}

/** In a time that tells nothing of where they differ. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
