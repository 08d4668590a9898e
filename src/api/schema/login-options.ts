/**
 * Options of a connection policy for logging in at targets that have only a terminal, as fields of
 * `/connectionpolicies`.
 */
import { type Static, Type } from 'typebox'
import {
  type LoginOptions,
  loginPatternFlaw,
  MAX_LOGIN_TIMEOUT,
  MAX_PATTERN_LENGTH,
} from '../../model/login-options.ts'
import { MAX_TYPED_LOGIN_BYTES } from '../../model/logon.ts'
import { check, exact, partial } from './fields.ts'

const pattern = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: MAX_PATTERN_LENGTH,
    description: `RE2 expression for ${description}`,
  })

export const LoginFields = exact({
  login_prompt: pattern('the last line where the target asks for the user name'),
  password_prompt: pattern('the last line where it asks for a password'),
  shell_prompt: pattern('the last line where it waits for a command: the login has succeeded'),
  login_failure: pattern('a line that says that the login was refused'),
  enable_command: Type.String({
    minLength: 1,
    maxLength: 64,
    pattern: '^[ -~]+$',
    description: 'typed after the login where the account has a credential of type `enable`',
  }),
  login_timeout: Type.Integer({
    minimum: 1,
    maximum: MAX_LOGIN_TIMEOUT,
    description: 'seconds that a login may take',
  }),
  client_user: Type.String({
    maxLength: MAX_TYPED_LOGIN_BYTES,
    pattern: '^[!-~]*$',
    description: "RLOGIN: user name that the broker sends for its own side; empty: the account's login",
  }),
  privileged_port: Type.Boolean({
    description: 'RLOGIN: connect from a port from 512 to 1023, as servers that trust hosts require',
  }),
})
export const LoginUpdate = partial(LoginFields)

export function loginFieldsOf(options: LoginOptions): Static<typeof LoginFields> {
  return {
    login_prompt: options.loginPrompt,
    password_prompt: options.passwordPrompt,
    shell_prompt: options.shellPrompt,
    login_failure: options.loginFailure,
    enable_command: options.enableCommand,
    login_timeout: options.loginTimeout,
    client_user: options.clientUser,
    privileged_port: options.privilegedPort,
  }
}

/**
 * Returns the options with the body's changes.
 * @throws ApiError `invalid_field` that names a bad expression
 */
export function loginOptionsOf(body: Static<typeof LoginUpdate>, old: LoginOptions): LoginOptions {
  for (const field of ['login_prompt', 'password_prompt', 'shell_prompt', 'login_failure'] as const) {
    const source = body[field]
    if (source !== undefined) check(field, loginPatternFlaw(source))
  }
  return {
    loginPrompt: body.login_prompt ?? old.loginPrompt,
    passwordPrompt: body.password_prompt ?? old.passwordPrompt,
    shellPrompt: body.shell_prompt ?? old.shellPrompt,
    loginFailure: body.login_failure ?? old.loginFailure,
    enableCommand: body.enable_command ?? old.enableCommand,
    loginTimeout: body.login_timeout ?? old.loginTimeout,
    clientUser: body.client_user ?? old.clientUser,
    privilegedPort: body.privileged_port ?? old.privilegedPort,
  }
}
