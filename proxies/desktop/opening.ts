/** A session at the gate, and its target's desktop; or why there is none. */
import type {
  Gate,
  Identity,
  Logon,
  LogonQuestion,
  OpenRequest,
  OpenSession,
  Source,
} from '../../src/contract/gate.ts'
import type { Connections } from '../session/connections.ts'
import type { ProxySession } from '../session/session.ts'
import { CredentialRefusedError, INTERNAL, TargetError } from '../wording/errors.ts'
import type { Choice, Refusal } from './target-choice.ts'

export interface DesktopOpeningOptions {
  gate: Gate
  connections: Connections
  identity: Identity
  source: Source
}

/** What is a protocol's own. */
export interface DesktopWay<Session extends ProxySession, Target> {
  protocol: OpenRequest['protocol']
  /** Takes over what the gate has opened. Rejects with TargetError when it cannot be recorded. */
  begin: (opened: OpenSession) => Promise<Session>
  /** Rejects with TargetError. */
  reach: (session: Session, opened: OpenSession, signal: AbortSignal) => Promise<Target>
}

/** Never rejects: a session that came to nothing is accounted for. `signal`: nobody waits for it any more, and why. */
export async function openDesktop<
  Session extends ProxySession,
  Target extends { stream: { destroy(): void } },
>(
  { gate, connections, identity, source }: DesktopOpeningOptions,
  { protocol, begin, reach }: DesktopWay<Session, Target>,
  choice: Choice,
  signal: AbortSignal,
): Promise<{ session: Session; target: Target } | Refusal> {
  let session: Session | undefined
  let question: LogonQuestion | undefined
  try {
    const answer = await gate.open({ identity: identity.token, protocol, source, ...choice })
    if (answer.result === 'denied') return { message: answer.message }
    if (answer.result === 'logon_needed') return toAsk(answer.question, choice.logon)
    question = answer.session.question
    session = await begin(answer.session)
    const stopped = new AbortController()
    session.onStop = (_result, reason) => stopped.abort(reason)
    // Somebody may have ended it already.
    connections.begun(session)
    const either = AbortSignal.any([signal, stopped.signal])
    const target = await reach(session, answer.session, either)
    if (either.aborted) {
      target.stream.destroy()
      throw new TargetError(String(either.reason))
    }
    return { session, target }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (session) {
      connections.onClosed(session)
      await session.close('failure', reason)
    }
    const message = error instanceof TargetError || session?.stopped ? reason : INTERNAL
    return { message, ...(question && error instanceof CredentialRefusedError && { question }) }
  }
}

/** `typed`: the last answer, which was none. */
function toAsk(question: LogonQuestion, typed: Logon | undefined): Refusal {
  const what = question.login === undefined ? 'login and password' : `password of ${question.login}`
  const flaw = question.flaw ?? `${question.target} asks for the ${what}`
  return { message: flaw, question: typed ? { ...question, flaw } : question }
}
