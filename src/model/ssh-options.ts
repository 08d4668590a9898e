/**
 * What a connection policy says of SSH sessions, beside why a host key is believed. It is stored as JSON that holds what differs
 * from the defaults, handed to the proxy with the session, and each option is a field of `/connectionpolicies`.
 */
import { AUTHENTICATION_METHODS, type AuthenticationMethod } from './authentication-methods.ts'
import { parseFileRule } from './file-rules.ts'
import type { LegacyAlgorithm } from './legacy-algorithms.ts'
import { SESSION_OPTIONS, type SessionOptions } from './session-options.ts'
import { formatOptions, storedOptions } from './stored-options.ts'

export interface SshOptions extends SessionOptions {
  /** How the bastion signs in at the target, in the order in which it tries; nothing else is tried. */
  authenticationMethods: readonly AuthenticationMethod[]
  /** What may be used toward the target beside what is good. */
  legacyAlgorithms: readonly LegacyAlgorithm[]
  /** Public keys, as lines, of the authorities that may certify the targets' host keys. */
  hostCaKeys: readonly string[]
  /** Rules (forward-rules.ts) for where the target may dial for the client; none: anywhere. */
  forwardTo: readonly string[]
  /** Rules for where the target may listen for the client; none: nowhere. */
  listenOn: readonly string[]
  /** Rules for files, as they were written (file-rules.ts); the first that matches decides. */
  fileRules: readonly string[]
  /** What to do about command lines: rules in the language of command-rules.ts. */
  commandRules: readonly string[]
  /** Bytes of a session's streams (channels without a terminal) that are recorded whole; one direction: a quarter. */
  recordingQuota: number
  pastRecordingQuota: PastQuota
  /** Bytes of a session's terminals that are recorded. */
  terminalQuota: number
  pastTerminalQuota: PastQuota
  /** Names of subsystems beside sftp that may be asked for, exactly. */
  subsystems: readonly string[]
}

/** `hash`: what follows is recorded by count and SHA-256. `end`: the session ends. */
export const PAST_QUOTA = ['hash', 'end'] as const
export type PastQuota = (typeof PAST_QUOTA)[number]

const MIB = 1024 * 1024
/** Bytes that a quota may be. */
export const MIN_QUOTA = 64 * 1024
export const MAX_QUOTA = 1024 * 1024 * MIB

export const MAX_SUBSYSTEMS = 32
/** RFC 4250 4.6.1. */
export const MAX_SUBSYSTEM_NAME = 64
const SUBSYSTEM_NAME = /^[!-+\--~]{1,64}$/

/** What is wrong with the name of a subsystem to be allowed; undefined when it is a good one. */
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
  recordingQuota: 64 * MIB,
  pastRecordingQuota: 'hash',
  terminalQuota: 1024 * MIB,
  // A flood must not be the way to a terminal that is not recorded.
  pastTerminalQuota: 'end',
  subsystems: [],
}

/** Whether the bastion signs in with the user's own agent. */
export function usesAgent({ authenticationMethods }: SshOptions): boolean {
  return authenticationMethods.includes('PUBKEY_AGENT_FORWARDING')
}

/** For the database: only what is no default. */
export function formatSshOptions(options: SshOptions): string {
  return formatOptions(options, SSH_OPTIONS)
}

/** @throws Error for an option, a method or a rule for files that this program does not know: it could not be enforced */
export function parseSshOptions(text: string): SshOptions {
  const given = storedOptions(text, SSH_OPTIONS)
  const method = given.authenticationMethods?.find((name) => !AUTHENTICATION_METHODS.includes(name))
  if (method !== undefined)
    throw new Error(`a connection policy has the method "${method}", which this program does not know`)
  for (const rule of given.fileRules ?? []) parseFileRule(rule)
  return { ...SSH_OPTIONS, ...given }
}
