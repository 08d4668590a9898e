/**
 * Logins at targets without a stored account: by account mapping, with the user's own name and sign-in
 * password, or by interactive login, with credentials that the user types. Both are kept in memory only,
 * bound to the identity, and sent to the target only.
 */
import { resolveTarget, type Target } from '../access/targets.ts'
import type { Challenge, Logon, LogonQuestion } from '../contract/gate.ts'
import { typedLoginFlaw, typedPasswordFlaw } from '../model/logon.ts'
import { asksAtSignIn, isTerminalProtocol, type Protocol } from '../model/rights.ts'
import type { AccessQueries } from '../store/store.ts'
import type { KeptSecrets, SignedIn } from './signed-in.ts'

/** Overwrites the kept secrets. */
export function wipe(kept: KeptSecrets): void {
  kept.password?.wipe()
  kept.answered?.password.wipe()
  kept.forwarded?.close()
  delete kept.password
  delete kept.answered
  delete kept.forwarded
}

/**
 * Returns what to prompt for during the sign-in, whether to keep the sign-in's password, and the target that the
 * login string names, if there is one.
 */
export async function logonAhead(
  access: Pick<AccessQueries, 'sessionTargets' | 'hasMapping'>,
  { userId, login, hasFactor }: Pick<SignedIn, 'userId' | 'login' | 'hasFactor'>,
  protocol: Protocol,
  hasPassword: boolean,
  now: number,
): Promise<{ keepsPassword: boolean; question?: LogonQuestion; target?: Target }> {
  const wanted = login.target
  if (!wanted) return { keepsPassword: hasPassword && (await access.hasMapping(userId)) }
  const rows = await access.sessionTargets(userId, now, { device: wanted.device })
  const resolution = resolveTarget(rows, wanted, protocol, { hasFactor })
  // A refusal is left to the opening of the session, which gives its reason and its event.
  if (resolution.result !== 'found' || resolution.target.rights.length === 0) return { keepsPassword: false }
  const { target } = resolution
  if (target.kind === 'account' || logsInItself(target)) return { keepsPassword: false, target }
  if (target.kind === 'mapping' && hasPassword) return { keepsPassword: true, target }
  // Other prompts come when the session is opened.
  if (!asksAtSignIn(protocol)) return { keepsPassword: false }
  return { keepsPassword: false, question: questionFor(target), target }
}

/** Whether the user logs in at the target's own prompts: a terminal is all that there is. */
export function logsInItself({ kind, protocol }: Pick<Target, 'kind' | 'protocol'>): boolean {
  return kind === 'interactive' && isTerminalProtocol(protocol)
}

/** Returns the prompt for a user that opens the target. */
function questionFor({ accountName, deviceName, serviceName }: Target): LogonQuestion {
  return { target: `${deviceName}:${serviceName}`, ...(accountName !== '' && { login: accountName }) }
}

/** Converts the question to a round of prompts during the sign-in. */
export function challengeOf(id: string, { target, login, flaw }: LogonQuestion): Challenge {
  const password = {
    text: `Password ${login === undefined ? '' : `of ${login} `}at ${target}: `,
    echo: false,
  }
  return {
    id,
    title: '',
    instructions: flaw ?? '',
    prompts: login === undefined ? [{ text: `Login at ${target}: `, echo: true }, password] : [password],
  }
}

/** Reads the answers to such a round. */
export function logonOf(answers: readonly string[], { login }: LogonQuestion): Logon {
  const [first = '', second = ''] = answers
  return login === undefined ? { login: first, password: second } : { password: first }
}

/** Returns the question with the error in the answer, or undefined if the answer is valid. */
export function askedAgain(question: LogonQuestion, { login, password }: Logon): LogonQuestion | undefined {
  const flaw =
    (question.login === undefined ? typedLoginFlaw(login ?? '') : undefined) ?? typedPasswordFlaw(password)
  return flaw === undefined ? undefined : { ...question, flaw }
}

export type ReadyLogon = { login: string; password: string; question: LogonQuestion } | { ask: LogonQuestion }

/**
 * Returns the user's credentials for the target, or the question to put. `typed`: the user was prompted
 * already. `isNamed`: the target is the one of the login string, for which the sign-in may have prompted.
 */
export function logonFor(
  target: Target,
  kept: KeptSecrets,
  typed: Logon | undefined,
  isNamed: boolean,
): ReadyLogon {
  const question = questionFor(target)
  const logon = typed ?? (isNamed ? answered(kept) : undefined) ?? own(target, kept)
  if (!logon) return { ask: question }
  const again = askedAgain(question, logon)
  if (again) return { ask: again }
  // The user cannot change a login that is known already.
  const login = (question.login ?? logon.login ?? '').normalize('NFC')
  return { login, password: logon.password, question }
}

function answered(kept: KeptSecrets): Logon | undefined {
  const { answered: logon } = kept
  if (!logon) return undefined
  const { login } = logon
  const password = logon.password.revealText()
  logon.password.wipe()
  delete kept.answered
  return { ...(login !== undefined && { login }), password }
}

function own({ kind }: Target, { password }: KeptSecrets): Logon | undefined {
  return kind === 'mapping' && password ? { password: password.revealText() } : undefined
}
