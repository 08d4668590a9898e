/**
 * Logging in at a target where no stored account is used: by account mapping under the person's own name with the
 * password that they gave at the sign-in, and by interactive login with what they are asked for. Both live in memory
 * only, bound to the identity, and go to the target only.
 */
import { resolveTarget, type Target } from '../access/targets.ts'
import type { Challenge, Logon, LogonQuestion } from '../contract/gate.ts'
import { typedLoginFlaw, typedPasswordFlaw } from '../model/logon.ts'
import { asksAtSignIn, isTerminalProtocol, type Protocol } from '../model/rights.ts'
import type { AccessQueries } from '../store/store.ts'
import type { KeptSecrets, SignedIn } from './signed-in.ts'

/** Overwrites them. */
export function wipe(kept: KeptSecrets): void {
  kept.password?.wipe()
  kept.answered?.password.wipe()
  delete kept.password
  delete kept.answered
}

/** What is still to be asked at the sign-in, and whether its password has to be kept. */
export async function logonAhead(
  access: Pick<AccessQueries, 'sessionTargets' | 'hasMapping'>,
  { userId, login }: Pick<SignedIn, 'userId' | 'login'>,
  protocol: Protocol,
  hasPassword: boolean,
): Promise<{ keepsPassword: boolean; question?: LogonQuestion }> {
  const wanted = login.target
  if (!wanted) return { keepsPassword: hasPassword && (await access.hasMapping(userId)) }
  const rows = await access.sessionTargets(userId, { device: wanted.device })
  const resolution = resolveTarget(rows, wanted, protocol)
  // what is refused is refused when the session is opened, with its reason and its event
  if (resolution.result !== 'found' || resolution.target.rights.length === 0) return { keepsPassword: false }
  const { target } = resolution
  if (target.kind === 'account' || logsInItself(target)) return { keepsPassword: false }
  if (target.kind === 'mapping' && hasPassword) return { keepsPassword: true }
  // what cannot be asked now is asked when the session is opened
  if (!asksAtSignIn(protocol)) return { keepsPassword: false }
  return { keepsPassword: false, question: questionFor(target) }
}

/** Whether the person types what is asked for at the target itself: the terminal is all that there is. */
export function logsInItself({ kind, protocol }: Pick<Target, 'kind' | 'protocol'>): boolean {
  return kind === 'interactive' && isTerminalProtocol(protocol)
}

/** What a person is asked who wants to open the target. */
function questionFor({ accountName, deviceName, serviceName }: Target): LogonQuestion {
  return { target: `${deviceName}:${serviceName}`, ...(accountName !== '' && { login: accountName }) }
}

/** The same as a round of questions at the sign-in. */
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

/** The answers to such a round. */
export function logonOf(answers: readonly string[], { login }: LogonQuestion): Logon {
  const [first = '', second = ''] = answers
  return login === undefined ? { login: first, password: second } : { password: first }
}

/** The question again with what is wrong with the answer; undefined: nothing is. */
export function askedAgain(question: LogonQuestion, { login, password }: Logon): LogonQuestion | undefined {
  const flaw =
    (question.login === undefined ? typedLoginFlaw(login ?? '') : undefined) ?? typedPasswordFlaw(password)
  return flaw === undefined ? undefined : { ...question, flaw }
}

export type ReadyLogon = { login: string; password: string; question: LogonQuestion } | { ask: LogonQuestion }

/**
 * What the person logs in with at the target, or what to ask them. `typed`: they were asked already. `isNamed`: the
 * target is the one of their login string, which they may have been asked for at the sign-in.
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
  // a login that is known already is not for the person to change
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
