/** Passwords that sign in once. */
import { randomInt, timingSafeEqual } from 'node:crypto'
import { Secret } from '../model/secret.ts'
import { VNC_PASSWORD_BYTES } from '../model/vnc-auth.ts'

/** Omits characters that look alike: 57 remain, so eight are worth 46 bits. */
const CHARACTERS = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Makes a password of eight characters, unless a protocol accepts more. */
export function newTicketPassword(length = VNC_PASSWORD_BYTES): Secret {
  return Secret.of(Array.from({ length }, () => CHARACTERS[randomInt(CHARACTERS.length)]).join(''))
}

/** Compares in constant time. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
