/** The options of SSH sessions as fields of `/connectionpolicies`. */
import { type Static, Type } from 'typebox'
import { commandRulesFlaw, MAX_COMMAND_RULE_LENGTH, MAX_COMMAND_RULES } from '../model/command-rules.ts'
import type { SshOptions } from '../model/ssh-options.ts'
import { check, exact, partial } from './fields.ts'

const MAX_SECONDS = 366 * 24 * 3600

const seconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: MAX_SECONDS, description: `seconds ${description}; 0: no end` })

export const SshFields = exact({
  idle_timeout: seconds(
    'until a session ends in which the user types nothing, and where there is no terminal, nothing moves',
  ),
  max_duration: seconds('that a session lasts at most'),
  command_rules: Type.Array(
    Type.String({ maxLength: MAX_COMMAND_RULE_LENGTH, examples: ['notify \\bsudo\\b'] }),
    {
      maxItems: MAX_COMMAND_RULES,
      description:
        'what to do about command lines: `notify REGEX` or `kill REGEX`, in the syntax of RE2, which holds where it matches anywhere in the line',
    },
  ),
})
export const SshUpdate = partial(SshFields)

export function sshFieldsOf(options: SshOptions): Static<typeof SshFields> {
  return {
    idle_timeout: options.idleTimeout,
    max_duration: options.maxDuration,
    command_rules: options.commandRules,
  }
}

/** The options as they are with what the body gives. @throws ApiError `invalid_field` that names a bad rule */
export function sshOptionsOf(body: Static<typeof SshUpdate>, old: SshOptions): SshOptions {
  const flaw = commandRulesFlaw(body.command_rules ?? [])
  check(`command_rules/${flaw?.index}`, flaw?.message)
  return {
    idleTimeout: body.idle_timeout ?? old.idleTimeout,
    maxDuration: body.max_duration ?? old.maxDuration,
    commandRules: body.command_rules ?? old.commandRules,
  }
}
