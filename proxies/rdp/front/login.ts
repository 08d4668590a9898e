/** The login string as RDP clients send it: in two fields, split as Windows splits names. */

/**
 * Joins the fields. A client splits the typed text at the first backslash, `DOMAIN\LOGIN`, or sends it whole.
 * A Windows domain has no meaning here. A first part with a separator of login strings is no domain, but the
 * start of a login string: `alice:CORP\admin@srv1`.
 */
export function loginOf({ domain, login }: { domain: string; login: string }): string {
  const whole = domain === '' ? login : `${domain}\\${login}`
  const backslash = whole.indexOf('\\')
  const isDomain = backslash !== -1 && !/[:+]/.test(whole.slice(0, backslash))
  return isDomain ? whole.slice(backslash + 1) : whole
}
