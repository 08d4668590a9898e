/** Opens a session at the gate and connects to its target's desktop, or returns the refusal. */
import type {
  Gate,
  Identity,
  LogonQuestion,
  OpenRequest,
  OpenSession,
  Source,
} from '../../src/contract/gate.ts'
import type { Connections } from '../session/connections.ts'
import { HELD_MS } from '../session/limits.ts'
import { type Choice, type Refusal, refusalOf } from '../session/refusal.ts'
import type { ProxySession } from '../session/session.ts'
import { CredentialRefusedError, INTERNAL, TargetError } from '../wording/errors.ts'

export interface DesktopOpeningOptions {
  gate: Gate
  connections: Connections
  identity: Identity
  source: Source
  /** Shows why the target is not connected yet. `cancel`: called if the user gives up. */
  onHeld: (text: string, cancel: () => void) => void
  /** Called when the connection may stay that many milliseconds longer without input. 0: as usual. */
  onPatience: (milliseconds: number) => void
}

/** The steps that differ between protocols. */
export interface DesktopWay<Session extends ProxySession, Target> {
  protocol: OpenRequest['protocol']
  /** Begins the session that the gate has opened. Rejects with TargetError if it cannot be recorded. */
  begin: (opened: OpenSession) => Promise<Session>
  /** Connects to the target. Rejects with TargetError. */
  reach: (session: Session, opened: OpenSession, signal: AbortSignal) => Promise<Target>
}

/** Never rejects; reports a session that failed to the gate. `signal` cancels, with its reason. */
export async function openDesktop<
  Session extends ProxySession,
  Target extends { stream: { destroy(): void } },
>(
  { gate, connections, identity, source, onHeld, onPatience }: DesktopOpeningOptions,
  { protocol, begin, reach }: DesktopWay<Session, Target>,
  choice: Choice,
  signal: AbortSignal,
): Promise<{ session: Session; target: Target } | Refusal> {
  let session: Session | undefined
  let question: LogonQuestion | undefined
  try {
    const answer = await gate.open({ identity: identity.token, protocol, source, ...choice })
    if (answer.result !== 'opened') return refusalOf(answer, choice)
    question = answer.session.question
    session = await begin(answer.session)
    const stopped = new AbortController()
    session.onStop = (_result, reason) => stopped.abort(reason)
    // The session may have been stopped already.
    connections.begun(session)
    const interrupt = new AbortController()
    const either = AbortSignal.any([signal, stopped.signal, interrupt.signal])
    const { suspension } = session
    if (suspension.isOn) {
      onHeld(suspension.reason, () => interrupt.abort('interrupted'))
      onPatience(HELD_MS)
      await suspension.released(either).finally(() => onPatience(0))
    }
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
