/**
 * A connection policy's options for SSH sessions, besides the check of host keys. They are stored as JSON
 * that holds the values that differ from the defaults and sent to the proxy with the session; each is a field
 * of `/connectionpolicies`.
 */
import { AUTHENTICATION_METHODS, type AuthenticationMethod } from './authentication-methods.ts'
import { parseFileRule } from './file-rules.ts'
import type { LegacyAlgorithm } from './legacy-algorithms.ts'
import { SESSION_OPTIONS, type SessionOptions } from './session-options.ts'
import { formatOptions, storedOptions } from './stored-options.ts'

export interface SshOptions extends SessionOptions {
  /** How the bastion signs in at the target, tried in this order. */
  authenticationMethods: readonly AuthenticationMethod[]
  /** Algorithms that may be used towards the target besides the good ones. */
  legacyAlgorithms: readonly LegacyAlgorithm[]
  /** Public keys, as lines, of the authorities that may certify the targets' host keys. */
  hostCaKeys: readonly string[]
  /** Rules (forward-rules.ts) for the addresses that the target may connect to for the client; empty: any. */
  forwardTo: readonly string[]
  /** Rules for the addresses that the target may listen on for the client; empty: none. */
  listenOn: readonly string[]
  /** Rules for files, as written (file-rules.ts); the first that matches decides. */
  fileRules: readonly string[]
  /** Rules for command lines (command-rules.ts). */
  commandRules: readonly string[]
  /** Seconds that approvers have for a line that a rule asks about. */
  askTimeout: number
  /**
   * Bytes of a session's streams (channels without a terminal) that are recorded whole; one direction may use
   * a quarter.
   */
  recordingQuota: number
  pastRecordingQuota: PastQuota
  /** Recorded bytes of a session's terminals. */
  terminalQuota: number
  pastTerminalQuota: PastQuota
  /** Exact names of the subsystems besides sftp that may be requested. */
  subsystems: readonly string[]
}

/**
 * `hash`: the rest is recorded as count and SHA-256. `count`: as its count only, which costs less than half as
 * much. `end`: the session ends.
 */
export const PAST_QUOTA = ['hash', 'count', 'end'] as const
export type PastQuota = (typeof PAST_QUOTA)[number]

const MIB = 1024 * 1024
/** The range of a quota, in bytes. */
export const MIN_QUOTA = 64 * 1024
export const MAX_QUOTA = 1024 * 1024 * MIB

/** Range of `askTimeout` in seconds: a user waits at a terminal. */
export const MIN_ASK_TIMEOUT = 5
export const MAX_ASK_TIMEOUT = 3_600

export const MAX_SUBSYSTEMS = 32
/** RFC 4250 4.6.1. */
export const MAX_SUBSYSTEM_NAME = 64
const SUBSYSTEM_NAME = /^[!-+\--~]{1,64}$/

/** Returns the error in the name of an allowed subsystem, or undefined if it is valid. */
export function subsystemError(name: string): string | undefined {
  if (name === 'sftp') return 'expected another than sftp, which has rights of its own'
  return SUBSYSTEM_NAME.test(name)
    ? undefined
    : 'expected a name of 1 to 64 printable ASCII characters without blanks and commas, such as netconf'
}

export const SSH_OPTIONS: Readonly<SshOptions> = {
  ...SESSION_OPTIONS,
  authenticationMethods: ['PUBKEY_VAULT', 'PASSWORD_VAULT', 'PASSWORD_MAPPING', 'PASSWORD_INTERACTIVE'],
  legacyAlgorithms: [],
  hostCaKeys: [],
  forwardTo: [],
  listenOn: ['localhost:*', '127.0.0.1:*', '[::1]:*'],
  fileRules: [],
  commandRules: [],
  askTimeout: 120,
  recordingQuota: 64 * MIB,
  pastRecordingQuota: 'hash',
  terminalQuota: 1024 * MIB,
  // A flood must not lead to a terminal without a recording.
  pastTerminalQuota: 'end',
  subsystems: [],
}

/** Whether the bastion signs in with the user's own agent. */
export function usesAgent({ authenticationMethods }: SshOptions): boolean {
  return authenticationMethods.includes('PUBKEY_AGENT_FORWARDING')
}

/** For the database: only the values that differ from the defaults. */
export function formatSshOptions(options: SshOptions): string {
  return formatOptions(options, SSH_OPTIONS)
}

/** @throws Error for an unknown option, method or rule for files, which could not be enforced */
export function parseSshOptions(text: string): SshOptions {
  const given = storedOptions(text, SSH_OPTIONS)
  const method = given.authenticationMethods?.find((name) => !AUTHENTICATION_METHODS.includes(name))
  if (method !== undefined)
    throw new Error(`a connection policy has the method "${method}", which this program does not know`)
  for (const rule of given.fileRules ?? []) parseFileRule(rule)
  return { ...SSH_OPTIONS, ...given }
}
