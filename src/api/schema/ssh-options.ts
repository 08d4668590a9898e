/** Options of SSH sessions as fields of `/connectionpolicies`. */
import { type Static, Type } from 'typebox'
import { MAX_LINE, PublicKeyError, parseAuthorizedKey } from '../../identity/public-key.ts'
import { AUTHENTICATION_METHODS } from '../../model/authentication-methods.ts'
import { commandRulesFlaw, MAX_COMMAND_RULE_LENGTH, MAX_COMMAND_RULES } from '../../model/command-rules.ts'
import { FileRuleError, MAX_FILE_RULE_LENGTH, MAX_FILE_RULES, parseFileRule } from '../../model/file-rules.ts'
import { forwardRuleError } from '../../model/forward-rules.ts'
import { LEGACY_ALGORITHMS } from '../../model/legacy-algorithms.ts'
import { PAST_MIN_FREE } from '../../model/session-options.ts'
import {
  MAX_ASK_TIMEOUT,
  MAX_QUOTA,
  MAX_SUBSYSTEM_NAME,
  MAX_SUBSYSTEMS,
  MIN_ASK_TIMEOUT,
  MIN_QUOTA,
  PAST_QUOTA,
  type SshOptions,
  subsystemError,
} from '../../model/ssh-options.ts'
import { ApiError } from '../http/errors.ts'
import { check, exact, oneOf, partial } from './fields.ts'

const MAX_SECONDS = 366 * 24 * 3600

const seconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: MAX_SECONDS, description: `seconds ${description}; 0: no end` })

const MAX_HOST_CAS = 64
const MAX_RULES = 1000
const MAX_RULE = 300

const forwardRules = (description: string) =>
  Type.Array(Type.String({ maxLength: MAX_RULE, description: 'HOST:PORT' }), {
    maxItems: MAX_RULES,
    description: `${description}. A HOST is a name (* for any characters), an address or a network, which holds literal addresses only; a PORT is a number, a range or *`,
  })

export const quota = (description: string) =>
  Type.Integer({ minimum: MIN_QUOTA, maximum: MAX_QUOTA, description: `bytes ${description}` })

const pastQuota = oneOf(
  PAST_QUOTA,
  'what happens past the quota: `hash` goes on and keeps count and SHA-256, `count` goes on and keeps the count only, `end` ends the session',
)

export const SshFields = exact({
  idle_timeout: seconds(
    'until an idle session ends: without input by the user, or, without a terminal, without any traffic',
  ),
  max_duration: seconds('that a session lasts at most'),
  authentication_methods: Type.Array(oneOf(AUTHENTICATION_METHODS, 'method'), {
    minItems: 1,
    maxItems: AUTHENTICATION_METHODS.length,
    'x-ordered': true,
    description:
      "how the broker signs in at a target, in the order in which it tries: PUBKEY_VAULT (the certificate of the domain's authority, then the account's key), PASSWORD_VAULT (its password), PASSWORD_MAPPING and PASSWORD_INTERACTIVE (at targets of account mapping and interactive login, the only ones there), PUBKEY_AGENT_FORWARDING (the keys of the agent that the user has forwarded to the broker, as by ssh -A; the account needs no credential then), KERBEROS_FORWARDING (the ticket of Kerberos that the user's client has forwarded, as by GSSAPIDelegateCredentials; no credential is needed either)",
  }),
  legacy_algorithms: Type.Array(oneOf(LEGACY_ALGORITHMS, 'algorithm'), {
    maxItems: LEGACY_ALGORITHMS.length,
    description: 'broken or weak algorithms that may be used toward the targets, for gear that has no others',
  }),
  host_ca_keys: Type.Array(Type.String({ maxLength: MAX_LINE, description: 'TYPE BASE64 COMMENT' }), {
    maxItems: MAX_HOST_CAS,
    description:
      'public keys of the authorities whose OpenSSH certificates (`ssh-keygen -s CA -h`) prove a host key where `host_key_policy` is `ca`',
  }),
  forward_to: forwardRules(
    'where a target may connect to for a user who holds SSH_DIRECT_TCPIP; none: anywhere but the metadata services of clouds',
  ),
  listen_on: forwardRules(
    'the addresses and ports on which a target may listen for a user who holds SSH_REVERSE_TCPIP; none: nowhere',
  ),
  file_rules: Type.Array(Type.String({ maxLength: MAX_FILE_RULE_LENGTH }), {
    maxItems: MAX_FILE_RULES,
    'x-ordered': true,
    description:
      'rules for files over SFTP and SCP, such as "deny up /srv/** ext=exe"; the first that matches decides',
  }),
  command_rules: Type.Array(Type.String({ maxLength: MAX_COMMAND_RULE_LENGTH }), {
    maxItems: MAX_COMMAND_RULES,
    description:
      'what to do about command lines: "notify REGEX", "ask REGEX" (approvers decide first) or "kill REGEX", such as "kill rm\\s+-\\S*r", in the syntax of RE2; it holds where it matches anywhere in the line',
  }),
  ask_timeout: Type.Integer({
    minimum: MIN_ASK_TIMEOUT,
    maximum: MAX_ASK_TIMEOUT,
    description: 'seconds that approvers have for a line that a rule asks about; then it does not run',
  }),
  recording_quota: quota(
    'of channels without a terminal that are recorded whole in one session; one direction of a channel has a quarter of it',
  ),
  past_recording_quota: pastQuota,
  terminal_quota: quota('of terminals that are recorded in one session'),
  past_terminal_quota: pastQuota,
  past_min_free: oneOf(
    PAST_MIN_FREE,
    'effect on running sessions when the volume of the recordings has less than `recordings.min_free`: `go_on` closes the recording and goes on without one, `end` ends the session, as strict recording always does',
  ),
  tell_watched: Type.Boolean({
    description: 'whether the user reads in the terminal that the session is watched, and by whom',
  }),
  subsystems: Type.Array(Type.String({ maxLength: MAX_SUBSYSTEM_NAME }), {
    maxItems: MAX_SUBSYSTEMS,
    description:
      'subsystems beside sftp, such as "netconf", that a user who holds SSH_REMOTE_COMMAND may ask for; none: no other',
  }),
})
export const SshUpdate = partial(SshFields)

export function sshFieldsOf(options: SshOptions): Static<typeof SshFields> {
  return {
    idle_timeout: options.idleTimeout,
    max_duration: options.maxDuration,
    authentication_methods: [...options.authenticationMethods],
    legacy_algorithms: [...options.legacyAlgorithms],
    host_ca_keys: [...options.hostCaKeys],
    forward_to: [...options.forwardTo],
    listen_on: [...options.listenOn],
    file_rules: [...options.fileRules],
    command_rules: [...options.commandRules],
    ask_timeout: options.askTimeout,
    recording_quota: options.recordingQuota,
    past_recording_quota: options.pastRecordingQuota,
    terminal_quota: options.terminalQuota,
    past_terminal_quota: options.pastTerminalQuota,
    past_min_free: options.pastMinFree,
    tell_watched: options.tellWatched,
    subsystems: [...options.subsystems],
  }
}

/** Returns the options with the body's changes. @throws ApiError `invalid_field` that names each bad rule */
export function sshOptionsOf(body: Static<typeof SshUpdate>, old: SshOptions): SshOptions {
  checkRules('host_ca_keys', body.host_ca_keys, publicKeyError)
  checkRules('forward_to', body.forward_to, forwardRuleError)
  checkRules('listen_on', body.listen_on, forwardRuleError)
  checkRules('file_rules', body.file_rules, fileRuleError)
  checkRules('subsystems', body.subsystems, subsystemError)
  const flaw = commandRulesFlaw(body.command_rules ?? [])
  check(`command_rules/${flaw?.index}`, flaw?.message)
  return {
    idleTimeout: body.idle_timeout ?? old.idleTimeout,
    maxDuration: body.max_duration ?? old.maxDuration,
    authenticationMethods: body.authentication_methods
      ? [...new Set(body.authentication_methods)]
      : old.authenticationMethods,
    legacyAlgorithms: body.legacy_algorithms ? [...new Set(body.legacy_algorithms)] : old.legacyAlgorithms,
    hostCaKeys: body.host_ca_keys ?? old.hostCaKeys,
    forwardTo: body.forward_to ?? old.forwardTo,
    listenOn: body.listen_on ?? old.listenOn,
    fileRules: body.file_rules ?? old.fileRules,
    commandRules: body.command_rules ?? old.commandRules,
    askTimeout: body.ask_timeout ?? old.askTimeout,
    recordingQuota: body.recording_quota ?? old.recordingQuota,
    pastRecordingQuota: body.past_recording_quota ?? old.pastRecordingQuota,
    terminalQuota: body.terminal_quota ?? old.terminalQuota,
    pastTerminalQuota: body.past_terminal_quota ?? old.pastTerminalQuota,
    pastMinFree: body.past_min_free ?? old.pastMinFree,
    tellWatched: body.tell_watched ?? old.tellWatched,
    subsystems: body.subsystems ? [...new Set(body.subsystems)] : old.subsystems,
  }
}

function publicKeyError(line: string): string | undefined {
  try {
    parseAuthorizedKey(line)
    return undefined
  } catch (error) {
    if (error instanceof PublicKeyError) return error.message
    throw error
  }
}

function fileRuleError(rule: string): string | undefined {
  try {
    parseFileRule(rule)
    return undefined
  } catch (error) {
    if (error instanceof FileRuleError) return error.message
    throw error
  }
}

function checkRules(
  field: string,
  rules: readonly string[] | undefined,
  errorOf: (rule: string) => string | undefined,
): void {
  const details = (rules ?? []).flatMap((rule, index) => {
    const message = errorOf(rule)
    return message === undefined ? [] : [{ field: `${field}/${index}`, message }]
  })
  if (details.length > 0) throw new ApiError('invalid_field', details)
}
