/**
 * What a connection policy says of SSH sessions, beside the host key. It is stored as JSON that holds what differs
 * from the defaults, handed to the proxy with the session, and each option is a field of `/connectionpolicies`.
 */
import { parseFileRule } from './file-rules.ts'
import type { LegacyAlgorithm } from './legacy-algorithms.ts'

export interface SshOptions {
  /** Seconds without a sign of the user's until the session ends; 0: no end. */
  idleTimeout: number
  /** Seconds that a session lasts at most; 0: no end. */
  maxDuration: number
  /** What may be used toward the target beside what is good. */
  legacyAlgorithms: readonly LegacyAlgorithm[]
  /** Rules (forward-rules.ts) for where the target may dial for the client; none: anywhere. */
  forwardTo: readonly string[]
  /** Rules for where the target may listen for the client; none: nowhere. */
  listenOn: readonly string[]
  /** Rules for files, as they were written (file-rules.ts); the first that matches decides. */
  fileRules: readonly string[]
  /** What to do about command lines: rules in the language of command-rules.ts. */
  commandRules: readonly string[]
}

export const SSH_OPTIONS: Readonly<SshOptions> = {
  idleTimeout: 0,
  maxDuration: 0,
  legacyAlgorithms: [],
  forwardTo: [],
  listenOn: ['localhost:*', '127.0.0.1:*', '[::1]:*'],
  fileRules: [],
  commandRules: [],
}

/** For the database: only what is no default. */
export function formatSshOptions(options: SshOptions): string {
  const names = Object.keys(SSH_OPTIONS) as (keyof SshOptions)[]
  const given = names.filter((name) => JSON.stringify(options[name]) !== JSON.stringify(SSH_OPTIONS[name]))
  return JSON.stringify(Object.fromEntries(given.map((name) => [name, options[name]])))
}

/** @throws Error for an option, or a rule for files, that this program does not know: it could not be enforced */
export function parseSshOptions(text: string): SshOptions {
  const given = JSON.parse(text) as Partial<SshOptions>
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(SSH_OPTIONS, name))
  if (unknown !== undefined)
    throw new Error(`a connection policy has the option "${unknown}", which this program does not know`)
  for (const rule of given.fileRules ?? []) parseFileRule(rule)
  return { ...SSH_OPTIONS, ...given }
}
