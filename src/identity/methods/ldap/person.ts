/** Persons and their groups, as a directory tells them. */
import { Buffer } from 'node:buffer'
import {
  type Entry,
  EqualityFilter,
  ExtensibleFilter,
  type Filter,
  OrFilter,
  PresenceFilter,
  ResultCodeError,
} from 'ldapts'
import type { AuthDomainAttributes, LdapOptions } from '../../../model/external-auths.ts'
import { MAX_GROUP_NAME } from '../../../model/group-names.ts'
import { MAX_LINE, parseAuthorizedKey } from '../../public-key.ts'
import type { MethodRefusal, Person } from '../method.ts'
import type { DirectoryConnection } from './connection.ts'
import { groupsOf, personFilter } from './filter.ts'
import { RESULT } from './refusals.ts'

/** Most groups of a person; those beyond are left out. */
export const MAX_GROUPS = 1000
/** Most searches for the rest of a long attribute. */
const MAX_RANGES = 16
/** Most groups in groups, one in the other. */
const MAX_DEPTH = 16
/** Members asked for in one search. */
const AT_ONCE = 50
const MAX_KEYS = 32
const MAX_VALUE = 512
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
      ? ['objectGUID', 'objectSid', 'primaryGroupID', 'userAccountControl', 'accountExpires']
      : ['entryUUID', 'pwdAccountLockedTime']),
  ]
  const filter = personFilter(options.loginAttribute, userName, options.userFilter)
  const search: Search = {
    scope: 'sub',
    attributes: [...new Set(wanted)],
    explicitBufferAttributes: ['objectGUID', 'objectSid'],
    sizeLimit: 2,
  }
  const { entries, isCut } = await connection.search(options.baseDn, filter, search, signal)
  const [entry, another] = entries
  return entry && !another && !isCut && entry.dn !== '' ? { dn: entry.dn, entry } : undefined
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
  const stableId =
    options.directory === 'active_directory'
      ? bytesOf(entry, 'objectGUID')?.toString('hex')
      : one('entryUUID')
  const [displayName, email, language] = [
    one(attributes.displayName ?? 'displayName'),
    one(attributes.email ?? 'mail'),
    one(attributes.language ?? 'preferredLanguage'),
  ]
  const keys = attributes.publicKey === undefined ? [] : valuesOf(entry, attributes.publicKey, MAX_LINE)
  return {
    userName: one(options.loginAttribute) ?? dn,
    groups: await groupsOfPerson(
      connection,
      options,
      await listedGroups(connection, { dn, entry }, attributes.group ?? 'memberOf', signal),
      { dn, entry },
      signal,
    ),
    ...(stableId !== undefined && { stableId }),
    ...(displayName !== undefined && { displayName }),
    ...(email !== undefined && { email }),
    ...(language !== undefined && { language }),
    ...(keys.length > 0 && { publicKeys: keys.slice(0, MAX_KEYS).filter(isUsable) }),
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
  { dn, entry }: Found,
  signal: AbortSignal,
): Promise<string[]> {
  const { directory, nestedGroups, groupBaseDn } = options
  const base = groupBaseDn ?? options.baseDn
  if (directory === 'active_directory') {
    const primary = await primaryGroup(connection, base, entry, signal)
    if (groupBaseDn === undefined) listed.push(...primary)
    if (!nestedGroups && groupBaseDn === undefined) return distinct(listed)
    if (nestedGroups) {
      const filters = [dn, ...primary].map(
        (value) => new ExtensibleFilter({ matchType: 'member', rule: MEMBER_OF_CHAIN, value }),
      )
      const found = await groupNames(connection, base, new OrFilter({ filters }), signal)
      return distinct([...(groupBaseDn === undefined ? listed : primary), ...found])
    }
    const found = await groupNames(connection, base, groupsOf([dn]), signal)
    return distinct([...primary, ...found])
  }
  if (groupBaseDn === undefined && !nestedGroups) return distinct(listed)
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
  filter: Filter,
  signal: AbortSignal,
): Promise<string[]> {
  try {
    const options: Search = { scope: 'sub', attributes: ['1.1'], sizeLimit: MAX_GROUPS }
    const { entries } = await connection.search(base, filter, options, signal)
    return entries.map(({ dn }) => dn)
  } catch (error) {
    if (error instanceof ResultCodeError && error.code === RESULT.noSuchObject) return []
    throw error
  }
}

function distinct(groups: readonly string[]): string[] {
  return [...new Set(groups)].slice(0, MAX_GROUPS)
}

/** Returns the group that Active Directory keeps by its number only, if it is below the base. */
async function primaryGroup(
  connection: DirectoryConnection,
  base: string,
  entry: Entry,
  signal: AbortSignal,
): Promise<string[]> {
  const sid = bytesOf(entry, 'objectSid')
  const group = integerOf(valuesOf(entry, 'primaryGroupID', MAX_VALUE)[0])
  if (!sid || sid.length < 12 || group === undefined || group > 0xffff_ffffn) return []
  const value = Buffer.from(sid)
  value.writeUInt32LE(Number(group), value.length - 4)
  return await groupNames(connection, base, new EqualityFilter({ attribute: 'objectSid', value }), signal)
}

/** Returns the groups in an attribute of the entry; Active Directory sends many in pieces ([MS-ADTS] 3.1.1.3.1.3.3). */
async function listedGroups(
  connection: DirectoryConnection,
  { dn, entry }: Found,
  name: string,
  signal: AbortSignal,
): Promise<string[]> {
  const groups = valuesOf(entry, name, MAX_GROUP_NAME)
  let piece: Entry | undefined = entry
  for (let searches = 0; piece !== undefined && searches < MAX_RANGES; searches++) {
    const range = rangeOf(piece, name)
    if (!range) break
    groups.push(...valuesOf(piece, range.key, MAX_GROUP_NAME))
    if (range.last === undefined || groups.length >= MAX_GROUPS) break
    const search: Search = { scope: 'base', attributes: [`${name};range=${range.last + 1}-*`], sizeLimit: 1 }
    const { entries } = await connection.search(
      dn,
      new PresenceFilter({ attribute: 'objectClass' }),
      search,
      signal,
    )
    piece = entries[0]
  }
  return groups
}

/** Returns the key of a piece, and the number of its last value, or none for the last piece. */
function rangeOf(entry: Entry, name: string): { key: string; last?: number } | undefined {
  for (const key of Object.keys(entry)) {
    const [attribute, option, more] = key.toLowerCase().split(';')
    const range = /^range=\d{1,9}-(\d{1,9}|\*)$/.exec(option ?? '')
    if (attribute !== name.toLowerCase() || !range || more !== undefined) continue
    return { key, ...(range[1] !== '*' && { last: Number(range[1]) }) }
  }
  return undefined
}

/** Whether a line is a key that may sign in: without options, which would not be kept, and of a type that is accepted. */
function isUsable(line: string): boolean {
  try {
    parseAuthorizedKey(line)
    return true
  } catch {
    return false
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

function bytesOf(entry: Entry, name: string): Buffer | undefined {
  const value = entry[name]
  const bytes = Array.isArray(value) ? value[0] : value
  return bytes === undefined || typeof bytes === 'string' ? undefined : bytes
}

function integerOf(text: string | undefined): bigint | undefined {
  return text !== undefined && /^\d{1,19}$/.test(text) ? BigInt(text) : undefined
}

function msOf(ticks: bigint): number {
  return Number((ticks - EPOCH_1601) / 10_000n)
}
