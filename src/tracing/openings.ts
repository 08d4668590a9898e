/**
 * Collects the steps of each session's opening into a trace: from the client's connection to the target and to the
 * recording. Sign-ins that fail, and clients that never open a session, make none. No name of a user or target is in
 * it: the session's id leads to them.
 */
import type { Step } from '../gate/steps.ts'

/** Clients, and sessions, that are remembered while they open: those that came first are forgotten. */
const MAX_OPEN = 10_000
/** Spans of a trace: an opening may have several rounds of questions. */
const MAX_SPANS = 32
/** Milliseconds after the target is there: the recording may begin a moment later. */
const SETTLE_MS = 1000

export interface Span {
  name: string
  begin: number
  end: number
  result: string
}

export interface Trace {
  /** Absent if no session was opened. */
  session?: string
  protocol: string
  /** `connected`, or what ended the opening. */
  result: string
  spans: readonly Span[]
}

interface Opening {
  identity: string
  session?: string
  protocol: string
  spans: Span[]
  ended?: { at: number; result: string }
}

/** Answers after which the client gets no session. */
const REFUSALS: ReadonlySet<string> = new Set(['denied', 'failed'])

export class Openings {
  /** When clients came, by address and port. */
  readonly #arrived = new Map<string, number>()
  readonly #byIdentity = new Map<string, Opening>()
  readonly #bySession = new Map<string, Opening>()
  readonly #ended = new Set<Opening>()

  arrived({ address, port }: { address: string; port: number }, at: number): void {
    remember(this.#arrived, `${address} ${port}`, at)
  }

  add(step: Step): void {
    const { name, source, identity } = step
    if (name === 'recording_append') return
    if (name === 'sign_in') {
      if (identity === undefined) return
      const client = source && `${source.address} ${source.port}`
      const came = client === undefined ? undefined : this.#arrived.get(client)
      if (client !== undefined) this.#arrived.delete(client)
      const opening = this.#of(identity, step)
      if (came !== undefined) {
        opening.spans.push({ name: 'accept', begin: came, end: step.begin, result: 'signed_in' })
      }
      push(opening, step)
      return
    }
    const opening = this.#found(step)
    if (!opening) return
    push(opening, step)
    if (name === 'authorization' && REFUSALS.has(step.result)) this.#end(opening, step)
    if (name === 'target_connect') this.#end(opening, step)
  }

  /** Returns the traces that are complete. With `isLast`, those too that may get another step. */
  take(now: number, isLast = false): Trace[] {
    const traces: Trace[] = []
    for (const opening of this.#ended) {
      const { ended, session, protocol, spans } = opening
      if (!ended || (now - ended.at < SETTLE_MS && !isLast)) continue
      this.#ended.delete(opening)
      if (session !== undefined) this.#bySession.delete(session)
      traces.push({ ...(session !== undefined && { session }), protocol, result: ended.result, spans })
    }
    return traces
  }

  #of(identity: string, step: Step): Opening {
    const protocol: string = step.protocol ?? ''
    const opening = this.#byIdentity.get(identity) ?? { identity, protocol, spans: [] }
    remember(this.#byIdentity, identity, opening)
    return opening
  }

  #found(step: Step): Opening | undefined {
    const { identity, session } = step
    const known = session === undefined ? undefined : this.#bySession.get(session)
    if (known || identity === undefined) return known
    const opening = this.#of(identity, step)
    if (session !== undefined) {
      opening.session = session
      remember(this.#bySession, session, opening)
    }
    return opening
  }

  /** The next session of the same client is another trace. */
  #end(opening: Opening, { end, result }: Step): void {
    opening.ended = { at: end, result }
    if (this.#ended.size < MAX_OPEN) this.#ended.add(opening)
    this.#byIdentity.delete(opening.identity)
  }
}

function push({ spans }: Opening, { name, begin, end, result }: Step): void {
  if (spans.length < MAX_SPANS) spans.push({ name, begin, end, result })
}

function remember<K, V>(known: Map<K, V>, key: K, value: V): void {
  const [oldest] = known.keys()
  if (known.size >= MAX_OPEN && oldest !== undefined) known.delete(oldest)
  known.set(key, value)
}
