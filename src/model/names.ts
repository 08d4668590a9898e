/**
 * The rules of names (contract.md, Login string) and how names are compared. Each `…NameError` function
 * returns the error in a name, as a sentence for the administrator, or undefined if the name is valid.
 */
import { Buffer } from 'node:buffer'
import { lookError, shownAs } from './look-alikes.ts'

/** Characters of the name of a device, service, domain or group. */
export const MAX_OBJECT_NAME = 128
/** UTF-8 bytes of the name of a user or account: it has to fit into a login string beside a target. */
export const MAX_PERSON_NAME = 128

const OBJECT_NAME = /^[A-Za-z0-9._-]+$/
/**
 * Control and format characters, lone surrogates, line separators, and the replacement character of
 * undecodable bytes.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\uFFFD]/u
/** A ULID: 26 characters of Crockford's base 32. */
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/

/** Whether a text could be an object's id: no name may look like one, so that a path is unambiguous. */
export function looksLikeId(text: string): boolean {
  return ID.test(text.toUpperCase())
}

/** Whether the text holds characters that no name may hold: invisible or harmful in a terminal or a log. */
export function hasUnprintable(text: string): boolean {
  return UNPRINTABLE.test(text)
}

/**
 * The form in which names are compared: Unicode NFC, without regard to case. Upper case first: only that
 * unites characters that differ in lower case alone (ß and ss, ſ and s, the two small sigmas).
 */
export function nameKey(name: string): string {
  return name.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')
}

/**
 * The form in which look-alikes are found: two names with the same one can be mistaken for each other. For an
 * ASCII name it is `nameKey`: which of those look alike depends on the font, and people know it.
 */
export function lookKey(name: string): string {
  return nameKey(shownAs(name))
}

/** For names of devices, services, domains and groups. */
export function objectNameError(name: string): string | undefined {
  if (name === '') return 'a name must not be empty'
  if (name.length > MAX_OBJECT_NAME) return `a name must not be longer than ${MAX_OBJECT_NAME} characters`
  if (!OBJECT_NAME.test(name)) return 'a name may hold letters (a to z), digits, ".", "_" and "-" only'
  if (name === '.' || name === '..') return 'a name must not be "." or ".."'
  if (looksLikeId(name)) return 'a name must not look like an id (26 letters and digits)'
  return undefined
}

/**
 * For names of users: the text that a login string can hold before its first separator; `:` and `+` are
 * escaped there.
 */
export function userNameError(name: string): string | undefined {
  if (name.includes('\\')) return 'a user name must not hold "\\": it selects an authentication domain'
  return personNameError(name) ?? lookError(name)
}

/** For names of accounts on targets. */
export function accountNameError(name: string): string | undefined {
  return personNameError(name) ?? lookError(name)
}

/** For an account's login at its target, which has its own rules. */
export function accountLoginError(login: string): string | undefined {
  return personNameError(login)
}

/** For names of guests, which the other users of a session read. */
export function guestNameError(name: string): string | undefined {
  if (hasUnprintable(name)) return 'a name must not hold control or invisible characters'
  return lookError(name)
}

function personNameError(name: string): string | undefined {
  if (name === '') return 'a name must not be empty'
  if (Buffer.byteLength(name) > MAX_PERSON_NAME)
    return `a name must not be longer than ${MAX_PERSON_NAME} bytes`
  if (hasUnprintable(name)) return 'a name must not hold control or invisible characters'
  if (/[:/]/.test(name)) return 'a name must not hold ":" or "/"'
  if (name !== name.trim()) return 'a name must not begin or end with a space'
  if (looksLikeId(name)) return 'a name must not look like an id (26 letters and digits)'
  return undefined
}
