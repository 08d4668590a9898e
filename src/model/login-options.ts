/**
 * How the bastion logs in at targets that show a terminal only, by what they print (TELNET, RLOGIN): fields of their
 * connection policies, stored as JSON that holds what differs from the defaults, and handed to the proxy with the
 * session. The expressions are RE2's, so they match in linear time.
 */
import { RE2JS, RE2JSSyntaxException } from 're2js'
import { formatOptions, storedOptions } from './stored-options.ts'

export interface LoginOptions {
  /** What the last line looks like when the target asks for the user name. */
  loginPrompt: string
  /** The same for a password, be it the login's or that of `enableCommand`. */
  passwordPrompt: string
  /** The same for a command: the login is over. */
  shellPrompt: string
  /** A whole line that says that the login was refused. */
  loginFailure: string
  /** What is typed where the account has a secret for it. */
  enableCommand: string
  /** Seconds that a login may take. */
  loginTimeout: number
  /** RLOGIN: whom the bastion says to be at its own end; empty: the account's login. */
  clientUser: string
  /** RLOGIN: come from a port from 512 to 1023, as servers of old want it. */
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
/** Instructions of one expression: what a character of a line costs at most. */
const MAX_PATTERN_PROGRAM = 1024
export const MAX_LOGIN_TIMEOUT = 600

/** What is wrong with an expression, for an administrator; undefined: nothing. */
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

/** For the database: only what is no default. */
export function formatLoginOptions(options: LoginOptions): string {
  return formatOptions(options, LOGIN_OPTIONS)
}

/** @throws Error for an option that this program does not know: it could not be enforced */
export function parseLoginOptions(text: string): LoginOptions {
  return { ...LOGIN_OPTIONS, ...storedOptions(text, LOGIN_OPTIONS) }
}
