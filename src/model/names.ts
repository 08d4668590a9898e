/**
 * The rules of names (contract.md, Login string) and how they are compared. Each `…NameError` function answers
 * with what is wrong with a name, as a sentence for the administrator, or undefined when it is a good one.
 */
import { Buffer } from 'node:buffer'
import { lookError, shownAs } from './look-alikes.ts'

/** Characters of a device's, service's, domain's or group's name. */
export const MAX_OBJECT_NAME = 128
/** UTF-8 bytes of a user's or account's name: it has to fit into a login string beside a target. */
export const MAX_PERSON_NAME = 128

const OBJECT_NAME = /^[A-Za-z0-9._-]+$/
/** Control and format characters, lone surrogates, line separators, and the mark of undecodable bytes. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\uFFFD]/u
/** A ULID: 26 characters of Crockford's base 32. */
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/

/** True for what could be an object's id: no name may look like one, so that a path means one thing only. */
export function looksLikeId(text: string): boolean {
  return ID.test(text.toUpperCase())
}

/** True when the text holds what no name may hold: it would be invisible, or worse, in a terminal or a log. */
export function hasUnprintable(text: string): boolean {
  return UNPRINTABLE.test(text)
}

/**
 * What two names are compared by: Unicode NFC, without regard to case. Upper case first, because that alone
 * brings together what differs in lower case only (ß and ss, ſ and s, the two small sigmas).
 */
export function nameKey(name: string): string {
  return name.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')
}

/**
 * What names are compared by to find one that shows as another: two that have it in common can be mistaken for each
 * other. Of a name in ASCII it is its key: which of those look alike depends on the font, and people know it.
 */
export function lookKey(name: string): string {
  return nameKey(shownAs(name))
}

/** Names of devices, services, domains and groups. */
export function objectNameError(name: string): string | undefined {
  if (name === '') return 'a name must not be empty'
  if (name.length > MAX_OBJECT_NAME) return `a name must not be longer than ${MAX_OBJECT_NAME} characters`
  if (!OBJECT_NAME.test(name)) return 'a name may hold letters (a to z), digits, ".", "_" and "-" only'
  if (name === '.' || name === '..') return 'a name must not be "." or ".."'
  if (looksLikeId(name)) return 'a name must not look like an id (26 letters and digits)'
  return undefined
}

/** Names of users: what a login string can hold before its first separator, `:` and `+` being escaped there. */
export function userNameError(name: string): string | undefined {
  if (name.includes('\\')) return 'a user name must not hold "\\": it selects an authentication domain'
  return personNameError(name) ?? lookError(name)
}

/** Names of accounts on targets. */
export function accountNameError(name: string): string | undefined {
  return personNameError(name) ?? lookError(name)
}

/** What an account is called at its target, which has its own rules. */
export function accountLoginError(login: string): string | undefined {
  return personNameError(login)
}

/** Names of guests, which the others in a session read. */
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
