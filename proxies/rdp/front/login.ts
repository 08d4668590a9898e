/** The login string as RDP clients send it: in two fields, split as Windows splits names. */

/**
 * Joins the fields. A client splits the typed text at the first backslash, `DOMAIN\LOGIN`, or sends it whole. The gate
 * decides whether the domain is one that it knows; a first part with a separator of login strings is none, but the start
 * of a login string: `alice:CORP\admin@srv1`.
 */
export function loginOf({ domain, login }: { domain: string; login: string }): string {
  return domain === '' ? login : `${domain}\\${login}`
}
