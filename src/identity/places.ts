/**
 * Finds the user or the authentication domain that a name stands for: `NAME@DOMAIN` and `DOMAIN\NAME` are a person of the
 * domain; a bare name is a local user, else a person of the default domain.
 */
import type { AuthDomain } from '../model/external-auths.ts'
import { looksLikeId, userNameError } from '../model/names.ts'
import { USER_AUTHS, type User } from '../model/objects.ts'
import type { Store } from '../store/store.ts'

export type PlaceStore = Pick<Store, 'users' | 'authDomains'>

export interface Place {
  /** The local user of that name. */
  local?: User
  /** The domain whose servers judge. Never together with `local`. */
  domain?: AuthDomain
  /** Set if the name does not say the domain, which is the default one. */
  isByDefault?: true
  /** The default domain, whose servers would judge if there were no such local user. */
  standard?: AuthDomain
  /** Name as those servers know it. */
  userName: string
  /** Name as rights, events and the lock-out know it: `NAME@DOMAIN` for a person. */
  name: string
}

/**
 * Splits `DOMAIN\NAME` at the first backslash, for any front: clients of Windows put the name of their own machine there,
 * so a part that names no domain is left out.
 */
export function splitDomain(user: string): { domain?: string; name: string } {
  const at = user.indexOf('\\')
  return at === -1 ? { name: user } : { domain: user.slice(0, at), name: user.slice(at + 1) }
}

/** Asks the database the same for every name. */
export async function placeOf(store: PlaceStore, user: string): Promise<Place> {
  const { domain: prefix, name } = splitDomain(user)
  const at = name.lastIndexOf('@')
  const named = (text: string) =>
    text === '' || looksLikeId(text) ? undefined : store.authDomains.find(text)
  const [found, standard, byPrefix, bySuffix] = await Promise.all([
    // By name only: an id is not accepted as a name.
    looksLikeId(name) ? undefined : store.users.find(name),
    store.authDomains.standard(),
    named(prefix ?? ''),
    named(name.slice(at + 1)),
  ])
  if (byPrefix) return personAt(byPrefix, name)
  // A person's row has the name that the suffix leads to.
  if (found && found.authDomainId === undefined)
    return { local: found, ...(standard && { standard }), userName: name, name }
  if (at > 0 && bySuffix) return personAt(bySuffix, name.slice(0, at))
  return standard ? { ...personAt(standard, name), isByDefault: true } : { userName: name, name }
}

/** Returns the place of a person of a domain. */
export function personAt(domain: AuthDomain, userName: string): Place {
  return { domain, userName, name: `${userName}@${domain.domainName}` }
}

/** Names of the external authentications by which the user may sign in, in order. */
export function serversOf({ userAuths }: Pick<User, 'userAuths'>): string[] {
  const own: readonly string[] = USER_AUTHS
  return userAuths.filter((name) => !own.includes(name))
}

/** Whether the name has one spelling only: servers leave out what is around a name, the lock-out does not. */
export function isSound(userName: string): boolean {
  return userName.trim() === userName && !/\s\s/u.test(userName) && userNameError(userName) === undefined
}
