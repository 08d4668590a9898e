/**
 * What a connection policy says of SSH sessions, beside the host key. It is stored as JSON that holds what differs
 * from the defaults, handed to the proxy with the session, and each option is a field of `/connectionpolicies`.
 */

export interface SshOptions {
  /** Seconds without a sign of the user's until the session ends; 0: no end. */
  idleTimeout: number
  /** Seconds that a session lasts at most; 0: no end. */
  maxDuration: number
  /** What to do about command lines: rules in the language of command-rules.ts. */
  commandRules: string[]
}

export const SSH_OPTIONS: Readonly<SshOptions> = { idleTimeout: 0, maxDuration: 0, commandRules: [] }

/** For the database: only what is no default. */
export function formatSshOptions(options: SshOptions): string {
  const names = Object.keys(SSH_OPTIONS) as (keyof SshOptions)[]
  const given = names.filter((name) => JSON.stringify(options[name]) !== JSON.stringify(SSH_OPTIONS[name]))
  return JSON.stringify(Object.fromEntries(given.map((name) => [name, options[name]])))
}

/** @throws Error for an option that this program does not know: it could not be enforced */
export function parseSshOptions(text: string): SshOptions {
  const given = JSON.parse(text) as Partial<SshOptions>
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(SSH_OPTIONS, name))
  if (unknown !== undefined)
    throw new Error(`a connection policy has the option "${unknown}", which this program does not know`)
  return { ...SSH_OPTIONS, ...given }
}
