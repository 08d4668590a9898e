/** Persons and their groups, as a directory tells them. */
import type { Buffer } from 'node:buffer'
import { type Entry, ExtensibleFilter, ResultCodeError } from 'ldapts'
import type { AuthDomainAttributes, LdapOptions } from '../../../model/external-auths.ts'
import type { MethodRefusal, Person } from '../method.ts'
import type { DirectoryConnection } from './connection.ts'
import { groupsOf, personFilter } from './filter.ts'
import { RESULT } from './refusals.ts'

/** Most groups of a person; those beyond are left out. */
export const MAX_GROUPS = 1000
/** Most groups in groups, one in the other. */
const MAX_DEPTH = 16
/** Members asked for in one search. */
const AT_ONCE = 50
const MAX_KEYS = 32
const MAX_VALUE = 512
const MAX_KEY = 8192
const MEMBER_OF_CHAIN = '1.2.840.113556.1.4.1941'

/** Of userAccountControl. */
const ACCOUNT_DISABLED = 0x2
/** 100 ns between 1601 and 1970. */
const EPOCH_1601 = 116_444_736_000_000_000n
const NEVER = 0x7fff_ffff_ffff_ffffn
/** Of pwdAccountLockedTime: until an administrator unlocks the account. */
const LOCKED_FOR_EVER = '000001010000Z'

type Search = Parameters<DirectoryConnection['search']>[2]

export interface Found {
  dn: string
  entry: Entry
}

/** Finds the person of a name. Undefined if there is none, or more than one. */
export async function findPerson(
  connection: DirectoryConnection,
  options: LdapOptions,
  attributes: AuthDomainAttributes,
  userName: string,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const isActiveDirectory = options.directory === 'active_directory'
  const wanted = [
    options.loginAttribute,
    attributes.displayName ?? 'displayName',
    attributes.email ?? 'mail',
    attributes.language ?? 'preferredLanguage',
    attributes.group ?? 'memberOf',
    ...(attributes.publicKey === undefined ? [] : [attributes.publicKey]),
    ...(isActiveDirectory
      ? ['objectGUID', 'userAccountControl', 'accountExpires', 'lockoutTime']
      : ['entryUUID', 'pwdAccountLockedTime']),
  ]
  const filter = personFilter(options.loginAttribute, userName, options.userFilter)
  const search: Search = {
    scope: 'sub',
    attributes: [...new Set(wanted)],
    explicitBufferAttributes: ['objectGUID'],
    sizeLimit: 2,
  }
  let entries: Entry[]
  try {
    entries = await connection.search(options.baseDn, filter, search, signal)
  } catch (error) {
    // Three at least.
    if (error instanceof ResultCodeError && error.code === RESULT.sizeLimitExceeded) return undefined
    throw error
  }
  const [entry, another] = entries
  return entry && !another && entry.dn !== '' ? { dn: entry.dn, entry } : undefined
}

/** Returns the person of an entry, with their groups. */
export async function readPerson(
  connection: DirectoryConnection,
  options: LdapOptions,
  attributes: AuthDomainAttributes,
  { dn, entry }: Found,
  signal: AbortSignal,
): Promise<Person> {
  const one = (name: string) => valuesOf(entry, name, MAX_VALUE)[0]
  const stableId = options.directory === 'active_directory' ? guidOf(entry) : one('entryUUID')
  const [displayName, email, language] = [
    one(attributes.displayName ?? 'displayName'),
    one(attributes.email ?? 'mail'),
    one(attributes.language ?? 'preferredLanguage'),
  ]
  const keys = attributes.publicKey === undefined ? [] : valuesOf(entry, attributes.publicKey, MAX_KEY)
  return {
    userName: one(options.loginAttribute) ?? dn,
    groups: await groupsOfPerson(
      connection,
      options,
      valuesOf(entry, attributes.group ?? 'memberOf', MAX_VALUE),
      dn,
      signal,
    ),
    ...(stableId !== undefined && { stableId }),
    ...(displayName !== undefined && { displayName }),
    ...(email !== undefined && { email }),
    ...(language !== undefined && { language }),
    ...(keys.length > 0 && { publicKeys: keys.slice(0, MAX_KEYS) }),
  }
}

/** Returns why an account may not sign in, as far as its entry tells, or undefined. `now`: milliseconds since the epoch. */
export function standingOf({ entry }: Found, now: number): MethodRefusal | undefined {
  const one = (name: string) => valuesOf(entry, name, MAX_VALUE)[0]
  if ((Number(one('userAccountControl') ?? 0) & ACCOUNT_DISABLED) !== 0) return 'account_disabled'
  const expires = integerOf(one('accountExpires'))
  if (expires !== undefined && expires > 0n && expires < NEVER && msOf(expires) <= now)
    return 'account_expired'
  if (one('pwdAccountLockedTime') === LOCKED_FOR_EVER) return 'account_locked'
  return undefined
}

async function groupsOfPerson(
  connection: DirectoryConnection,
  options: LdapOptions,
  listed: string[],
  dn: string,
  signal: AbortSignal,
): Promise<string[]> {
  const { directory, nestedGroups, groupBaseDn } = options
  if (groupBaseDn === undefined && !nestedGroups) return listed.slice(0, MAX_GROUPS)
  const base = groupBaseDn ?? options.baseDn
  if (nestedGroups && directory === 'active_directory') {
    const filter = new ExtensibleFilter({ matchType: 'member', rule: MEMBER_OF_CHAIN, value: dn })
    const found = await groupNames(connection, base, filter, signal)
    return [...new Set([...listed, ...found])].slice(0, MAX_GROUPS)
  }
  const all = new Set(groupBaseDn === undefined ? listed : [])
  let members = [dn, ...all]
  for (let depth = 0; depth < (nestedGroups ? MAX_DEPTH : 1) && members.length > 0; depth++) {
    const next: string[] = []
    for (let begin = 0; begin < members.length; begin += AT_ONCE) {
      const names = await groupNames(
        connection,
        base,
        groupsOf(members.slice(begin, begin + AT_ONCE)),
        signal,
      )
      next.push(...names.filter((name) => !all.has(name)))
      for (const name of names) all.add(name)
      if (all.size >= MAX_GROUPS) return [...all].slice(0, MAX_GROUPS)
    }
    members = [...new Set(next)]
  }
  return [...all]
}

async function groupNames(
  connection: DirectoryConnection,
  base: string,
  filter: Parameters<DirectoryConnection['search']>[1],
  signal: AbortSignal,
): Promise<string[]> {
  try {
    const options: Search = { scope: 'sub', attributes: ['1.1'], sizeLimit: MAX_GROUPS }
    const entries = await connection.search(base, filter, options, signal)
    return entries.map(({ dn }) => dn)
  } catch (error) {
    if (error instanceof ResultCodeError && error.code === RESULT.noSuchObject) return []
    throw error
  }
}

/** Returns the text values of an attribute, whatever the case of its name; too long ones are left out. */
function valuesOf(entry: Entry, name: string, most: number): string[] {
  const key = Object.keys(entry).find((one) => one.toLowerCase() === name.toLowerCase())
  const value = key === undefined || key === 'dn' ? undefined : entry[key]
  const values = Array.isArray(value) ? value : value === undefined ? [] : [value]
  return values
    .map((one) => (typeof one === 'string' ? one : one.toString('utf8')))
    .filter((text) => text !== '' && text.length <= most)
}

function guidOf(entry: Entry): string | undefined {
  const value = entry['objectGUID']
  const bytes = (Array.isArray(value) ? value[0] : value) as Buffer | string | undefined
  return bytes === undefined || typeof bytes === 'string' ? undefined : bytes.toString('hex')
}

function integerOf(text: string | undefined): bigint | undefined {
  return text !== undefined && /^\d{1,19}$/.test(text) ? BigInt(text) : undefined
}

function msOf(ticks: bigint): number {
  return Number((ticks - EPOCH_1601) / 10_000n)
}
