/** The Kerberos realm of a domain's accounts, and its KDCs. Stored as JSON. */

export interface DomainKerberos {
  realm: string
  /** Asked in order. At least one, eight at most. */
  kdcs: readonly { host: string; port?: number }[]
  /** Milliseconds that one KDC has for each answer. */
  timeoutMs: number
}

/** For the database: empty if there is none. */
export function formatDomainKerberos(kerberos: DomainKerberos | undefined): string {
  return kerberos ? JSON.stringify(kerberos) : ''
}

export function parseDomainKerberos(text: string): DomainKerberos | undefined {
  return text === '' ? undefined : (JSON.parse(text) as DomainKerberos)
}

/**
 * Returns the name of an account's login in this realm, or undefined if the login is of another one: `alice`,
 * `CORP\alice` and `alice@corp.example` are `alice`.
 */
export function principalOf(login: string, realm: string): string | undefined {
  const name = login.slice(login.indexOf('\\') + 1)
  const at = name.lastIndexOf('@')
  const isOwn = at < 0 || name.slice(at + 1).toUpperCase() === realm.toUpperCase()
  const user = at < 0 ? name : name.slice(0, at)
  return isOwn && user !== '' && !/[/@\\\p{Cc}]/u.test(user) ? user : undefined
}
