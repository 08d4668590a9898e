/**
 * What one session worker may ask of the gate. A seat knows the connections that its worker was given, and the
 * sign-ins and sessions that came of them: nothing else can be named by it. A worker that names what is not its
 * own, or sends what no worker sends, is in breach.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_VALUE } from '../audit/events/clean.ts'
import type { GateNotice, OpenRequest, Source } from '../contract/gate.ts'
import type { GateMethod, GateRequest } from '../contract/worker.ts'
import type { BrokerGate } from '../gate/gate.ts'
import { ForeignFieldError } from '../gate/proxy-events.ts'
import { RequestPace } from './request-pace.ts'
import { BreachError, requestOf } from './requests.ts'

/** A seat's share of the gate, for tests and for the one who makes it. */
export type SeatGate = Pick<BrokerGate, GateMethod | 'onNotice' | 'isRunning' | 'isSignedIn' | 'abandon'>

/** Methods that are not only about one session. */
type OwnCase =
  | 'authenticate'
  | 'open'
  | 'targets'
  | 'denied'
  | 'withdraw'
  | 'leave'
  | 'close'
  | 'event'
  | 'hostKey'

/** Recordings of a dead worker that are sealed at a time: each is read whole. */
const SEALED_TOGETHER = 8

/** Sign-ins and challenges of one worker: each costs the broker memory until the worker gives it up. */
export const MAX_SIGN_INS = 20_000
/** Bytes of an event's values that count as one event: those of most have less. */
const EVENT_BYTES = 1_024
/** Milliseconds for the requests of a dead worker that are in progress: the disk may hang. */
const SETTLE_MS = 10_000

export class Seat {
  readonly #gate: SeatGate
  readonly #stopNotices: () => void
  /** Number of connections of the worker, by address and port: a client may use a port for several fronts. */
  readonly #sources = new Map<string, number>()
  /** Challenges, and contexts of Kerberos. */
  readonly #challenges = new Set<string>()
  readonly #tokens = new Set<string>()
  readonly #sessions = new Set<string>()
  readonly #opening = new Set<string>()
  readonly #closing = new Set<string>()
  /** Sessions with an event on its way to the audit log. */
  readonly #telling = new Set<string>()
  readonly #pace = new RequestPace()
  readonly #running = new Set<Promise<unknown>>()
  #isClosed = false
  /** Why all that the worker had was ended, once it was. */
  #ended: string | undefined

  readonly #settleMs: number

  /** `notify` gets the notices about sessions and sign-ins of this seat. */
  constructor(gate: SeatGate, notify: (notice: GateNotice) => void, settleMs: number = SETTLE_MS) {
    this.#gate = gate
    this.#settleMs = settleMs
    this.#stopNotices = gate.onNotice((notice) => {
      const isOwn =
        'identity' in notice ? this.#tokens.has(notice.identity) : this.#sessions.has(notice.session)
      if (isOwn) notify(notice)
    })
  }

  /** Number of sessions. */
  get sessions(): number {
    return this.#sessions.size
  }

  /** The worker was given a connection from there. */
  arrived(source: Source): void {
    const key = keyOf(source)
    this.#sources.set(key, (this.#sources.get(key) ?? 0) + 1)
  }

  /** The connection from there is closed. */
  left(source: Source): void {
    const key = keyOf(source)
    const left = (this.#sources.get(key) ?? 0) - 1
    if (left > 0) this.#sources.set(key, left)
    else {
      this.#sources.delete(key)
      this.#pace.forget(key)
    }
  }

  /**
   * Answers a request. Rejects with BreachError for one that no honest worker makes, and with the gate's own
   * errors.
   */
  async ask(method: GateMethod, request: unknown): Promise<unknown> {
    if (this.#isClosed) throw new Error('the session worker has ended')
    const answer = this.#answer(method, request)
    this.#running.add(answer)
    try {
      return await answer
    } finally {
      this.#running.delete(answer)
    }
  }

  /**
   * Ends everything of a worker that has died: its sessions are sealed and accounted for, its sign-ins and
   * challenges are forgotten. Returns a line for the log about each session, and the errors.
   */
  async close(reason: string): Promise<{ closed: string[]; failures: unknown[] }> {
    this.#isClosed = true
    this.#stopNotices()
    this.#pace.end()
    const closed: string[] = []
    const failures: unknown[] = []
    // Requests in progress may open a session, or close one, yet. One that takes longer ends what it has opened.
    await Promise.race([Promise.allSettled(this.#running), sleep(this.#settleMs, undefined, { ref: false })])
    this.#ended = reason
    const turns = [...this.#sessions].filter((id) => !this.#opening.has(id) && !this.#closing.has(id))
    const ended = Array.from({ length: SEALED_TOGETHER }, async () => {
      for (let session = turns.pop(); session !== undefined; session = turns.pop()) {
        await this.#gate.abandon(session, reason).then(
          (line) => closed.push(line),
          (error: unknown) => failures.push(error),
        )
      }
    })
    const left = [...this.#tokens, ...this.#challenges].map((identity) => this.#gate.leave({ identity }))
    await Promise.all(ended)
    for (const result of await Promise.allSettled(left)) {
      if (result.status === 'rejected') failures.push(result.reason)
    }
    this.#sessions.clear()
    this.#tokens.clear()
    this.#challenges.clear()
    return { closed, failures }
  }

  async #answer(method: GateMethod, asked: unknown): Promise<unknown> {
    switch (method) {
      case 'authenticate':
        return await this.#authenticate(requestOf(method, asked))
      case 'open':
        return await this.#open(requestOf(method, asked))
      case 'targets': {
        const request = requestOf(method, asked)
        this.#requireToken(request.identity)
        return await this.#gate.targets(request)
      }
      case 'denied': {
        const request = requestOf(method, asked)
        this.#requireToken(request.identity)
        return await this.#gate.denied(request)
      }
      case 'withdraw': {
        const request = requestOf(method, asked)
        this.#requireToken(request.identity)
        return await this.#gate.withdraw(request)
      }
      case 'leave':
        return await this.#leave(requestOf(method, asked))
      case 'close': {
        const request = requestOf(method, asked)
        this.#requireSession(request.session)
        await this.#close(request)
        return
      }
      case 'event':
        return await this.#event(requestOf(method, asked))
      case 'hostKey':
        return await this.#hostKey(requestOf(method, asked))
      default:
        return await this.#ofSession(method, asked)
    }
  }

  async #authenticate(request: GateRequest<'authenticate'>): Promise<unknown> {
    this.#requireSource(request.source)
    await this.#pace.turn('authenticate', keyOf(request.source))
    if (this.#tokens.size + this.#challenges.size >= MAX_SIGN_INS) throw new Error('too many sign-ins')
    // A guess at another worker's challenge or context is answered like any wrong answer.
    const begun = begunIn(request.proof)
    if (begun !== undefined && !this.#challenges.delete(begun)) return { result: 'rejected' }
    const answer = await this.#gate.authenticate(request)
    if (answer.result === 'accepted') await this.#keep(answer.identity.token, this.#tokens)
    if (answer.result === 'challenge') await this.#keep(answer.challenge.id, this.#challenges)
    if (answer.result === 'context') await this.#keep(answer.context, this.#challenges)
    return answer
  }

  /** Adds a sign-in or a challenge, or gives it up if the worker's have been. */
  async #keep(identity: string, own: Set<string>): Promise<void> {
    if (this.#ended === undefined) own.add(identity)
    else await this.#gate.leave({ identity })
  }

  async #open(request: OpenRequest): Promise<unknown> {
    this.#requireToken(request.identity)
    this.#requireSource(request.source)
    await this.#pace.turn('open', request.identity)
    let session: string | undefined
    try {
      const answer = await this.#gate.open(request, (id) => {
        session = id
        this.#opening.add(id)
        this.#sessions.add(id)
      })
      if (answer.result !== 'opened' && session !== undefined) this.#sessions.delete(session)
      return answer
    } catch (error) {
      if (session !== undefined && !this.#gate.isRunning(session)) this.#sessions.delete(session)
      throw error
    } finally {
      if (session !== undefined) {
        this.#opening.delete(session)
        await this.#endLate(session)
      }
    }
  }

  /** One account for each session: another request at the same time is refused. */
  async #close(request: GateRequest<'close'>): Promise<void> {
    const { session } = request
    if (this.#closing.has(session)) throw new Error('this session is being closed')
    this.#closing.add(session)
    try {
      await this.#gate.close(request)
      this.#sessions.delete(session)
      this.#pace.forget(session)
    } finally {
      this.#closing.delete(session)
      await this.#endLate(session)
    }
  }

  /** Ends a session that a request has opened, or has failed to close, after all others were ended. */
  async #endLate(session: string): Promise<void> {
    if (this.#ended !== undefined && this.#gate.isRunning(session))
      await this.#gate.abandon(session, this.#ended)
  }

  /** A session's events come one by one: proxies/session/event-queue.ts. */
  async #event(request: GateRequest<'event'>): Promise<void> {
    const { session } = request
    this.#requireSession(session)
    if (this.#telling.has(session)) throw new BreachError('it sent two events of a session at a time')
    this.#telling.add(session)
    try {
      await this.#pace.turn('event', session, weightOf(request))
      await this.#gate.event(request)
    } catch (error) {
      throw error instanceof ForeignFieldError ? new BreachError(error.message) : error
    } finally {
      this.#telling.delete(session)
    }
  }

  async #hostKey(request: GateRequest<'hostKey'>): Promise<unknown> {
    this.#requireSession(request.session)
    await this.#pace.turn('hostKey', request.session)
    return await this.#gate.hostKey(request)
  }

  async #leave({ identity }: GateRequest<'leave'>): Promise<void> {
    const isOwn = this.#tokens.delete(identity) || this.#challenges.delete(identity)
    // A challenge that was answered, or a sign-in that was withdrawn, is gone already.
    if (isOwn) {
      this.#pace.forget(identity)
      await this.#gate.leave({ identity })
    } else if (this.#gate.isSignedIn(identity))
      throw new BreachError('it named the sign-in of another worker')
  }

  #ofSession<M extends Exclude<GateMethod, OwnCase>>(method: M, asked: unknown): Promise<unknown> {
    const request = requestOf(method, asked)
    this.#requireSession(request.session)
    const gate = this.#gate as unknown as Record<M, (request: GateRequest<M>) => Promise<unknown>>
    return gate[method](request)
  }

  #requireSession(session: string): void {
    if (this.#sessions.has(session)) return
    if (this.#gate.isRunning(session)) throw new BreachError('it named the session of another worker')
    throw new Error('there is no such session')
  }

  #requireToken(token: string): void {
    if (this.#tokens.has(token)) return
    if (this.#gate.isSignedIn(token)) throw new BreachError('it named the sign-in of another worker')
    throw new Error('this identity is no longer signed in')
  }

  #requireSource(source: Source): void {
    // It may have been closed a moment ago.
    if (!this.#sources.has(keyOf(source))) throw new Error('there is no connection from there')
  }
}

/** Returns the id of the challenge or context that the proof goes on with. */
function begunIn(proof: GateRequest<'authenticate'>['proof']): string | undefined {
  if (proof.method === 'keyboard-interactive' && 'challenge' in proof) return proof.challenge
  return 'context' in proof ? proof.context : undefined
}

function keyOf({ address, port }: Source): string {
  return `${address} ${port}`
}

/** Number of events of usual length that this one takes the room of. */
function weightOf({ fields }: GateRequest<'event'>): number {
  const lengths = Object.values(fields).map((value) => (typeof value === 'string' ? value.length : 8))
  const bytes = lengths.reduce((sum, length) => sum + Math.min(length, MAX_VALUE), 0)
  return Math.max(1, bytes / EVENT_BYTES)
}
