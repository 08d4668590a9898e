/** Servers as texts: `ldap2:636`, `[2001:db8::1]:636`, or without a port. */

export function serverText({ host, port }: { host: string; port: number | null }): string {
  if (port === null) return host
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

export function serverIn(text: string): { host: string; port: number | null } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? []
  const host = bracketed ?? plain
  return host === undefined ? { host: text, port: null } : { host, port: Number(port) }
}
