/**
 * The login string, the user-name field of every protocol (contract.md, Login string), and the canonical name
 * of a target. No string can be read as another person's: the user is the whole part before the first
 * separator, each part escapes the separators that it holds, and escapes are decoded once, after splitting.
 *
 *     USER [SEP [ACCOUNT[@DOMAIN]]@DEVICE [SEP SERVICE]]     SEP: the first of ":" and "+" that occurs
 *     USER SEP DEVICE  |  USER SEP ACCOUNT SEP DEVICE [SEP SERVICE]
 *     USER SEP ACCOUNT@DOMAIN SEP DEVICE SEP SERVICE
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { hasUnprintable } from './names.ts'

export const MAX_LOGIN_BYTES = 256

/** The target of a login string; without an account the domain is absent too. Names are in NFC. */
export interface WantedTarget {
  account?: string
  domain?: string
  device: string
  service?: string
}

export interface Login {
  user: string
  /** Absent if the user is to choose. */
  target?: WantedTarget
}

/** Why a string is not a login string, with the syntax, for the user. It never repeats the input. */
export interface Malformed {
  malformed: string
}

export const LOGIN_SYNTAX =
  'expected USER, USER:ACCOUNT@DEVICE, USER:ACCOUNT@DOMAIN@DEVICE:SERVICE, or the same with "+" for ":" ' +
  '(for example ops1:root@srv1 or ops1+root@srv1+ssh); ":", "+", "@" and "%" inside a name are written ' +
  '%3A, %2B, %40 and %25'

/** Parses a login string. Never throws. */
export function parseLogin(text: string): Login | Malformed {
  const flaw = flawOf(text)
  if (flaw) return malformed(flaw)
  const at = text.search(/[:+]/)
  const user = decode(at === -1 ? text : text.slice(0, at))
  if (typeof user !== 'string') return malformed(user.flaw)
  if (at === -1) return { user }
  const target = parseTarget(text.slice(at + 1), text.charAt(at))
  return 'flaw' in target ? malformed(target.flaw) : { user, target }
}

/**
 * Formats a login so that `parseLogin` reads it back. A domain without an account cannot be written and is
 * left out.
 */
export function formatLogin({ user, target }: Login, separator: ':' | '+' = ':'): string {
  // "@" is no separator within a user's name
  const name = encode(user).replaceAll('%40', '@')
  return target ? name + separator + formatTarget(target, separator) : name
}

/** Formats the part after the user: `[ACCOUNT[@DOMAIN]]@DEVICE[SEP SERVICE]`. */
export function formatTarget(
  { account, domain, device, service }: WantedTarget,
  separator: ':' | '+' = ':',
): string {
  // an empty domain means: no stored account (formatCanonical)
  const owner =
    account === undefined ? [''] : domain === undefined || domain === '' ? [account] : [account, domain]
  const target = [...owner, device].map(encode).join('@')
  return service === undefined ? target : target + separator + encode(service)
}

/**
 * Formats a target's canonical name, `ACCOUNT@DOMAIN:DEVICE:SERVICE`, with the special characters of a login
 * string escaped. Without a stored account the domain is empty: `ACCOUNT@DEVICE:SERVICE`, or
 * `@DEVICE:SERVICE` if the user is prompted for the account, as after USER in a login string.
 */
export function formatCanonical({ account, domain, device, service }: Required<WantedTarget>): string {
  if (domain === '') return `${encode(account)}@${encode(device)}:${encode(service)}`
  return `${encode(account)}@${encode(domain)}:${encode(device)}:${encode(service)}`
}

/**
 * Parses a canonical name, as listed in target groups. An account's "@" may be unescaped here: the domain
 * begins after the last one. Returns undefined for any other form.
 */
export function parseCanonical(text: string): Required<WantedTarget> | undefined {
  if (flawOf(text)) return undefined
  const [owner, device, service, ...more] = text.split(':')
  if (owner === undefined || device === undefined || service === undefined || more.length > 0)
    return undefined
  const at = owner.lastIndexOf('@')
  if (at === -1) return undefined
  const names = [owner.slice(0, at), owner.slice(at + 1), device, service].map(decode)
  const [account, domain, ...rest] = names.filter((name) => typeof name === 'string')
  if (account === undefined || domain === undefined || rest[0] === undefined || rest[1] === undefined)
    return undefined
  return { account, domain, device: rest[0], service: rest[1] }
}

/**
 * Parses the output of `formatCanonical`: a canonical name, or one without a stored account, whose domain is
 * then empty. Returns undefined for any other form.
 */
export function parseTargetName(text: string): Required<WantedTarget> | undefined {
  const stored = parseCanonical(text)
  if (stored || flawOf(text)) return stored
  const target = parseTarget(text, ':')
  if ('flaw' in target || target.service === undefined || !text.includes('@')) return undefined
  const { account = '', device, service } = target
  return target.domain === undefined ? { account, domain: '', device, service } : undefined
}

interface Flaw {
  flaw: string
}

function parseTarget(text: string, separator: string): WantedTarget | Flaw {
  const parts = text.split(separator)
  const other = separator === ':' ? '+' : ':'
  if (text.includes(other)) return { flaw: `"${other}" after the separator "${separator}"` }
  if (parts.slice(1).some((part) => part.includes('@'))) return { flaw: '"@" after the device' }
  const owner = (parts[0] ?? '').split('@')
  const words = [...owner, ...parts.slice(1)]
  const names: string[] = []
  for (const [index, word] of words.entries()) {
    // "@DEVICE": without an account
    const name = index === 0 && word === '' && owner.length === 2 && parts.length < 3 ? '' : decode(word)
    if (typeof name !== 'string') return name
    names.push(name)
  }
  const [first = '', second = '', third = '', fourth = ''] = names
  switch (`${owner.length} ${parts.length}`) {
    case '1 1': // DEVICE
      return { device: first }
    case '1 2': // ACCOUNT SEP DEVICE
      return { account: first, device: second }
    case '1 3': // ACCOUNT SEP DEVICE SEP SERVICE
      return { account: first, device: second, service: third }
    case '2 1': // ACCOUNT@DEVICE
      return { ...(first !== '' && { account: first }), device: second }
    case '2 2': // ACCOUNT@DEVICE SEP SERVICE
      return { ...(first !== '' && { account: first }), device: second, service: third }
    case '2 3': // ACCOUNT@DOMAIN SEP DEVICE SEP SERVICE
      return { account: first, domain: second, device: third, service: fourth }
    case '3 1': // ACCOUNT@DOMAIN@DEVICE
      return { account: first, domain: second, device: third }
    case '3 2': // ACCOUNT@DOMAIN@DEVICE SEP SERVICE
      return { account: first, domain: second, device: third, service: fourth }
    default:
      return { flaw: 'too many parts' }
  }
}

/** Decodes the `%XX` of one part, in NFC; the checks of the whole string apply to the result again. */
function decode(part: string): string | Flaw {
  if (part === '') return { flaw: 'an empty part' }
  if (/%(?![0-9A-Fa-f]{2})/.test(part)) return { flaw: '"%" without two hexadecimal digits' }
  const bytes = Buffer.from(part.replaceAll(/%(..)|[^%]+/g, hexOf), 'hex')
  if (!isUtf8(bytes)) return { flaw: 'invalid UTF-8' }
  const name = bytes.toString('utf8').normalize('NFC')
  const flaw = flawOf(name)
  return flaw ? { flaw } : name
}

function hexOf(text: string, digits: string | undefined): string {
  return digits ?? Buffer.from(text, 'utf8').toString('hex')
}

function encode(name: string): string {
  return name.replaceAll(/[%:+@]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}

function flawOf(text: string): string | undefined {
  if (text === '') return 'an empty name'
  // a string never has fewer bytes than UTF-16 units, so a huge one is rejected before it is encoded
  if (MAX_LOGIN_BYTES < text.length || MAX_LOGIN_BYTES < Buffer.byteLength(text)) {
    return `more than ${MAX_LOGIN_BYTES} bytes`
  }
  // a decoder puts U+FFFD in the place of invalid UTF-8
  return hasUnprintable(text) ? 'control or invisible characters, or invalid UTF-8' : undefined
}

function malformed(flaw: string): Malformed {
  return { malformed: `the login holds ${flaw}: ${LOGIN_SYNTAX}` }
}
