/** The login string as RDP's clients send it: in two fields, cut as Windows cuts names. */

/**
 * A client cuts what somebody types at the first backslash, `DOMAIN\LOGIN`, or sends it whole. A Windows domain means
 * nothing here; where the part before the backslash has a separator of login strings it is none, but the begin of one:
 * `alice:CORP\admin@srv1`.
 */
export function loginOf({ domain, login }: { domain: string; login: string }): string {
  const whole = domain === '' ? login : `${domain}\\${login}`
  const backslash = whole.indexOf('\\')
  const isDomain = backslash !== -1 && !/[:+]/.test(whole.slice(0, backslash))
  return isDomain ? whole.slice(backslash + 1) : whole
}
