/** The options of SSH sessions as fields of `/connectionpolicies`. */
import { type Static, Type } from 'typebox'
import { commandRulesFlaw, MAX_COMMAND_RULE_LENGTH, MAX_COMMAND_RULES } from '../model/command-rules.ts'
import { FileRuleError, MAX_FILE_RULE_LENGTH, MAX_FILE_RULES, parseFileRule } from '../model/file-rules.ts'
import { forwardRuleError } from '../model/forward-rules.ts'
import { LEGACY_ALGORITHMS } from '../model/legacy-algorithms.ts'
import type { SshOptions } from '../model/ssh-options.ts'
import { ApiError } from './errors.ts'
import { check, exact, oneOf, partial } from './fields.ts'

const MAX_SECONDS = 366 * 24 * 3600

const seconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: MAX_SECONDS, description: `seconds ${description}; 0: no end` })

const MAX_RULES = 1000
const MAX_RULE = 300

const forwardRules = (description: string) =>
  Type.Array(Type.String({ maxLength: MAX_RULE, description: 'HOST:PORT' }), {
    maxItems: MAX_RULES,
    description: `${description}. A HOST is a name (* for any characters), an address or a network, which holds literal addresses only; a PORT is a number, a range or *`,
  })

export const SshFields = exact({
  idle_timeout: seconds(
    'until a session ends in which the user types nothing, and where there is no terminal, nothing moves',
  ),
  max_duration: seconds('that a session lasts at most'),
  legacy_algorithms: Type.Array(oneOf(LEGACY_ALGORITHMS, 'algorithm'), {
    maxItems: LEGACY_ALGORITHMS.length,
    description: 'broken or weak algorithms that may be used toward the targets, for gear that has no others',
  }),
  forward_to: forwardRules(
    'where a target may connect to for a user who holds SSH_DIRECT_TCPIP; none: anywhere',
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
      'what to do about command lines: "notify REGEX" or "kill REGEX", such as "kill rm\\s+-\\S*r", in the syntax of RE2; it holds where it matches anywhere in the line',
  }),
})
export const SshUpdate = partial(SshFields)

export function sshFieldsOf(options: SshOptions): Static<typeof SshFields> {
  return {
    idle_timeout: options.idleTimeout,
    max_duration: options.maxDuration,
    legacy_algorithms: [...options.legacyAlgorithms],
    forward_to: [...options.forwardTo],
    listen_on: [...options.listenOn],
    file_rules: [...options.fileRules],
    command_rules: [...options.commandRules],
  }
}

/**
 * The options as they are with what the body gives.
 * @throws ApiError `invalid_field` that names each bad rule
 */
export function sshOptionsOf(body: Static<typeof SshUpdate>, old: SshOptions): SshOptions {
  checkRules('forward_to', body.forward_to, forwardRuleError)
  checkRules('listen_on', body.listen_on, forwardRuleError)
  checkRules('file_rules', body.file_rules, fileRuleError)
  const flaw = commandRulesFlaw(body.command_rules ?? [])
  check(`command_rules/${flaw?.index}`, flaw?.message)
  return {
    idleTimeout: body.idle_timeout ?? old.idleTimeout,
    maxDuration: body.max_duration ?? old.maxDuration,
    legacyAlgorithms: body.legacy_algorithms ? [...new Set(body.legacy_algorithms)] : old.legacyAlgorithms,
    forwardTo: body.forward_to ?? old.forwardTo,
    listenOn: body.listen_on ?? old.listenOn,
    fileRules: body.file_rules ?? old.fileRules,
    commandRules: body.command_rules ?? old.commandRules,
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
