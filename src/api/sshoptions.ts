/** The options of SSH sessions as fields of `/connectionpolicies`. */
import { type Static, Type } from 'typebox'
import { FileRuleError, MAX_FILE_RULE_LENGTH, MAX_FILE_RULES, parseFileRule } from '../model/file-rules.ts'
import { LEGACY_ALGORITHMS } from '../model/legacy-algorithms.ts'
import type { SshOptions } from '../model/ssh-options.ts'
import { check, exact, oneOf, partial } from './fields.ts'

const MAX_SECONDS = 366 * 24 * 3600

const seconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: MAX_SECONDS, description: `seconds ${description}; 0: no end` })

export const SshFields = exact({
  idle_timeout: seconds(
    'until a session ends in which the user types nothing, and where there is no terminal, nothing moves',
  ),
  max_duration: seconds('that a session lasts at most'),
  legacy_algorithms: Type.Array(oneOf(LEGACY_ALGORITHMS, 'algorithm'), {
    maxItems: LEGACY_ALGORITHMS.length,
    description: 'broken or weak algorithms that may be used toward the targets, for gear that has no others',
  }),
  file_rules: Type.Array(Type.String({ maxLength: MAX_FILE_RULE_LENGTH }), {
    maxItems: MAX_FILE_RULES,
    'x-ordered': true,
    description:
      'rules for files over SFTP and SCP, such as "deny up /srv/** ext=exe"; the first that matches decides',
  }),
})
export const SshUpdate = partial(SshFields)

export function sshFieldsOf(options: SshOptions): Static<typeof SshFields> {
  return {
    idle_timeout: options.idleTimeout,
    max_duration: options.maxDuration,
    legacy_algorithms: [...options.legacyAlgorithms],
    file_rules: [...options.fileRules],
  }
}

/**
 * The options as they are with what the body gives.
 * @throws ApiError `invalid_field` for a rule that cannot be read
 */
export function sshOptionsOf(body: Static<typeof SshUpdate>, old: SshOptions): SshOptions {
  body.file_rules?.forEach((rule, index) => {
    check('file_rules', flawOf(rule, index))
  })
  return {
    idleTimeout: body.idle_timeout ?? old.idleTimeout,
    maxDuration: body.max_duration ?? old.maxDuration,
    legacyAlgorithms: body.legacy_algorithms ? [...new Set(body.legacy_algorithms)] : old.legacyAlgorithms,
    fileRules: body.file_rules ?? old.fileRules,
  }
}

function flawOf(rule: string, index: number): string | undefined {
  try {
    parseFileRule(rule)
    return undefined
  } catch (error) {
    if (error instanceof FileRuleError) return `rule ${index + 1}, ${error.message}`
    throw error
  }
}
