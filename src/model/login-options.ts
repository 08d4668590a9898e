/**
 * How the bastion logs in at targets that have a terminal only (TELNET, RLOGIN), by the text that they print.
 * Fields of a connection policy, stored as JSON that holds the values that differ from the defaults, and sent
 * to the proxy with the session. The expressions are RE2's, which match in linear time.
 */
import { RE2JS, RE2JSSyntaxException } from 're2js'
import { formatOptions, storedOptions } from './stored-options.ts'

export interface LoginOptions {
  /** Matches the last line when the target prompts for the user name. */
  loginPrompt: string
  /** Matches a prompt for a password, of the login or of `enableCommand`. */
  passwordPrompt: string
  /** Matches a shell prompt: the login is complete. */
  shellPrompt: string
  /** Matches a whole line that reports a refused login. */
  loginFailure: string
  /** Sent after the login if the account has a secret for it. */
  enableCommand: string
  /** Seconds that a login may take. */
  loginTimeout: number
  /** RLOGIN: the client user name that the bastion sends; empty: the account's login. */
  clientUser: string
  /** RLOGIN: connect from a port from 512 to 1023, as old servers require. */
  privilegedPort: boolean
}

export const LOGIN_OPTIONS: Readonly<LoginOptions> = {
  loginPrompt: '(?i)(?:^|[^a-z])(?:login|log in|user|user ?name|user ?id)(?: as)?\\s?:\\s*$',
  passwordPrompt: '(?i)(?:password|passcode|passphrase|secret)[^:]{0,80}:\\s*$',
  shellPrompt: '[#$%>]\\s*$',
  loginFailure:
    '(?i)(?:incorrect|invalid|wrong|bad) (?:login|user|password|passwords|secret|secrets|credentials)|(?:login|password|authentication|access) (?:is |was )?(?:incorrect|invalid|failed|failure|denied|rejected)|permission denied',
  enableCommand: 'enable',
  loginTimeout: 30,
  clientUser: '',
  privilegedPort: true,
}

export const LOGIN_PATTERNS = ['loginPrompt', 'passwordPrompt', 'shellPrompt', 'loginFailure'] as const
export type LoginPattern = (typeof LOGIN_PATTERNS)[number]

export const MAX_PATTERN_LENGTH = 512
/** Instructions of one expression: the most that a character of a line costs. */
const MAX_PATTERN_PROGRAM = 1024
export const MAX_LOGIN_TIMEOUT = 600

/** Returns the error in an expression, for an administrator, or undefined if it is valid. */
export function loginPatternFlaw(source: string): string | undefined {
  if (source === '') return 'expected an expression, found none'
  try {
    const size = RE2JS.compile(source).programSize()
    return size > MAX_PATTERN_PROGRAM ? 'it takes too much work: make repetitions smaller' : undefined
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException)) throw error
    return `expected an expression in the syntax of RE2: ${error.getDescription()}`
  }
}

/** For the database: only the values that differ from the defaults. */
export function formatLoginOptions(options: LoginOptions): string {
  return formatOptions(options, LOGIN_OPTIONS)
}

/** @throws Error for an unknown option, which could not be enforced */
export function parseLoginOptions(text: string): LoginOptions {
  return { ...LOGIN_OPTIONS, ...storedOptions(text, LOGIN_OPTIONS) }
}
