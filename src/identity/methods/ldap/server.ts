/** One directory server: connections of the service's account for searches, and others to try users' passwords on. */
import { PasswordPolicyControl, ResultCodeError } from 'ldapts'
import type { Secret } from '../../../model/secret.ts'
import { DirectoryConnection, DirectoryError, type Endpoint, nameOf } from './connection.ts'
import { Leases } from './leases.ts'
import { refusalOf } from './refusals.ts'

const MAX_SEARCHING = 4
const MAX_BINDING = 8
const SEARCHING_IDLE_MS = 60_000
/** Short: a bind is not done again on a new connection, since it may have been counted. */
const BINDING_IDLE_MS = 5000

export class DirectoryServer {
  readonly endpoint: Endpoint
  readonly searching: Leases<DirectoryConnection>
  readonly binding: Leases<DirectoryConnection>

  constructor(endpoint: Endpoint, bindDn: string, bindPassword: Secret | undefined) {
    this.endpoint = endpoint
    this.searching = new Leases(MAX_SEARCHING, SEARCHING_IDLE_MS, async (signal) => {
      const connection = await DirectoryConnection.open(endpoint, signal)
      try {
        if (bindDn !== '') await bindService(connection, nameOf(endpoint), bindDn, bindPassword, signal)
        return connection
      } catch (error) {
        connection.close()
        throw error
      }
    })
    this.binding = new Leases(MAX_BINDING, BINDING_IDLE_MS, (signal) =>
      DirectoryConnection.open(endpoint, signal),
    )
  }

  /** Tries a user's password. The connection has no identity afterwards. @throws DirectoryError */
  async tryPassword(dn: string, password: Secret, signal: AbortSignal): Promise<Bound> {
    return await this.binding.useOnce(signal, async (connection) => {
      const bound = await bind(connection, dn, password, signal)
      if (!bound.refused) await becomeAnonymous(connection, signal)
      return bound
    })
  }

  close(): void {
    this.searching.close()
    this.binding.close()
  }
}

/** Outcome of a bind: `refused` with the server's error, or accepted. */
export interface Bound {
  refused?: ResultCodeError
  policy: PasswordPolicyControl
}

/** Binds with a password, which must not be empty: that would be no proof (RFC 4513 5.1.2). @throws DirectoryError */
export async function bind(
  connection: DirectoryConnection,
  dn: string,
  password: Secret,
  signal: AbortSignal,
): Promise<Bound> {
  if (dn === '' || password.length === 0) throw new Error('a bind without name or password proves nothing')
  const policy = new PasswordPolicyControl()
  try {
    await connection.run((client) => client.bind(dn, password.revealText(), policy), signal)
    return { policy }
  } catch (error) {
    if (error instanceof ResultCodeError) return { policy, refused: error }
    throw error
  }
}

/** Leaves the connection without an identity: a refused bind does so, too (RFC 4513 4). */
export async function becomeAnonymous(connection: DirectoryConnection, signal: AbortSignal): Promise<void> {
  try {
    await connection.run((client) => client.bind('', ''), signal)
  } catch {
    // The verdict on the password stands, whatever becomes of the connection.
  }
}

async function bindService(
  connection: DirectoryConnection,
  name: string,
  dn: string,
  password: Secret | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (password === undefined || password.length === 0)
    throw new DirectoryError(`${name}: \`bind_dn\` needs a \`bind_password\``)
  const { refused, policy } = await bind(connection, dn, password, signal)
  if (refused && refusalOf(refused, policy) === undefined) throw refused
  if (refused)
    throw new DirectoryError(`${name} refuses the service's account ${dn}: ${said(refused.message)}`)
}

/** Returns a server's words for administrators: one line, shortened. */
export function said(text: string): string {
  return text
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, 200)
}
