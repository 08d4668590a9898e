/**
 * One session of the gate as a proxy holds it, whatever its protocol: its rights, its recording, its events, its end.
 * Everything that ends a session comes together here: the broker's word, a recording that cannot be written, the audit.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { FRAME } from '../../recordings/container/frames.ts'
import { NoSpaceError } from '../../recordings/container/free-space.ts'
import type { Gate, GateNotice, OpenSession, ProxyEventCode, ProxyFields } from '../../src/contract/gate.ts'
import type { Right } from '../../src/model/rights.ts'
import type { SessionOptions } from '../../src/model/session-options.ts'
import { TargetError } from '../wording/errors.ts'
import { EventQueue } from './event-queue.ts'
import { CLOSE_ATTEMPTS, CLOSE_RETRY_MS, MAX_DENIALS } from './limits.ts'
import { SessionRecording } from './session-recording.ts'

export type GuestChange = (GateNotice & { type: 'guest' })['change']
export type SessionResult = 'success' | 'failure' | 'killed'

export class ProxySession {
  readonly id: string
  readonly user: string
  readonly target: OpenSession['target']
  readonly rights: ReadonlySet<Right>
  /** Output waits for its recording. */
  readonly isStrict: boolean
  readonly recording: SessionRecording
  /** Data passed on: from the client toward the target, and back. */
  bytesIn = 0
  bytesOut = 0
  /** Signs of the user: what they typed, and whatever else shows that somebody is there. */
  signs = 0
  /** The relay's: the session has to end now. */
  onStop: ((result: SessionResult, reason: string) => void) | undefined
  /** The relay's: a line for the user. */
  onTell: ((text: string) => void) | undefined
  /** The relay's: what the broker says of the guest of an invitation. */
  onGuest: ((invitation: string, change: GuestChange) => void) | undefined
  /** The relay's: the recording takes more again. */
  onDrain: (() => void) | undefined

  readonly #gate: Gate
  readonly #pastMinFree: SessionOptions['pastMinFree']
  readonly #used = new Set<Right>()
  readonly #events: EventQueue
  #stopped: { result: SessionResult; reason: string } | undefined
  #ending: Promise<void> | undefined
  #denials = 0

  constructor(opened: OpenSession, gate: Gate) {
    const session = opened.id
    this.id = session
    this.user = opened.user
    this.target = opened.target
    this.rights = new Set(opened.rights)
    this.isStrict = opened.isStrict ?? false
    this.#pastMinFree = opened.options.pastMinFree
    this.#gate = gate
    this.recording = new SessionRecording({
      sign: (statement) => gate.sign({ session, statement }),
      onFailure: (error) => this.#recordingFailed(error),
      onFull: () => this.stop('failure', 'the recording of this session is full'),
      live: (request) => gate.live({ session, ...request }),
      onDrain: () => this.onDrain?.(),
    })
    this.#events = new EventQueue({
      send: (code, fields) => gate.event({ session, code, fields }),
      onFailure: () => this.stop('failure', 'the audit log cannot be written'),
      onDrain: () => this.onDrain?.(),
    })
  }

  /**
   * Begins the recording of what the gate has opened. When that fails, so does the session (invariant 2): it is
   * accounted at the gate and this throws.
   */
  async begin({ recording }: OpenSession): Promise<void> {
    if (!recording) return
    try {
      await this.recording.begin(recording)
    } catch (error) {
      await this.close(
        'failure',
        `the recording cannot begin: ${error instanceof Error ? error.message : String(error)}`,
      )
      throw new TargetError('the session cannot be recorded, so it is not opened: tell an administrator')
    }
  }

  #recordingFailed(error: Error): void {
    const reason = `the recording cannot be written: ${error.message}`
    if (!(error instanceof NoSpaceError) || this.isStrict || this.#pastMinFree === 'end') {
      this.stop('failure', reason)
      return
    }
    this.recording.stop(reason)
    this.tell('channel.unrecorded', { reason: `${reason}; the session goes on, as its policy says` })
    this.onTell?.('this session is not recorded from here on')
  }

  /** Has to end, and why; before the relay listens the reason is kept for it. */
  stop(result: SessionResult, reason: string): void {
    if (this.#stopped) return
    this.#stopped = { result, reason }
    this.onStop?.(result, reason)
  }

  /** Why the session had to end before the relay took over. */
  get stopped(): { result: SessionResult; reason: string } | undefined {
    return this.#stopped
  }

  /** True while the recording has not taken what it was given: nothing more should be read. */
  get isFull(): boolean {
    return this.#events.isFull || this.recording.isFull
  }

  /** Tells the audit log without waiting for it; a log that fails ends the session. */
  tell<C extends ProxyEventCode>(code: C, fields: ProxyFields<C>): void {
    this.#events.tell(code, fields)
  }

  /** Resolves when the audit log has it. */
  audit<C extends ProxyEventCode>(code: C, fields: ProxyFields<C>): Promise<void> {
    return this.#events.write(code, fields)
  }

  /** A right is made use of, which the account of the session will name. */
  uses(right: Right): void {
    this.#used.add(right)
  }

  /** Something that takes a right is allowed: resolves when the audit log has it. */
  opens(right: Right, fields: ProxyFields<'channel.open'> = {}): Promise<void> {
    this.uses(right)
    return this.audit('channel.open', { subprotocol: right, ...fields })
  }

  /**
   * Something was refused. Refusing does not wait for the audit log, but a log that fails ends the session, and so
   * do refusals without end: the log is everybody's.
   */
  denied(what: string, reason: string, destination?: string): void {
    if (!this.mayDeny()) return
    this.tell('channel.denied', {
      subprotocol: what,
      reason,
      ...(destination !== undefined && { destination }),
    })
    this.recording.writeJson(FRAME.denied, 0, { what, reason })
  }

  /** Counts a refusal; false: there were too many, and the session ends. */
  protected mayDeny(): boolean {
    if (this.#denials++ === MAX_DENIALS) this.stop('failure', 'too many requests that are not allowed')
    return this.#denials <= MAX_DENIALS
  }

  /** Seals the recording and accounts for the session. Safe to call again: the first call counts. */
  close(result: SessionResult, reason?: string): Promise<void> {
    this.#ending ??= this.#close(this.#stopped?.result ?? result, this.#stopped?.reason ?? reason)
    return this.#ending
  }

  /** The recording is sealed, and the last events can be told now. */
  protected tellRest(): void {}

  /** Never rejects: a session whose end cannot be accounted for is found by the broker's next start. */
  async #close(result: SessionResult, reason: string | undefined): Promise<void> {
    const end = { result, ...(reason !== undefined && { reason }) }
    await this.recording.settled()
    await this.recording.seal(end)
    this.tellRest()
    await this.#events.settled()
    for (let attempt = 1; attempt <= CLOSE_ATTEMPTS; attempt++) {
      try {
        await this.#gate.close({
          session: this.id,
          ...end,
          bytesIn: this.bytesIn,
          bytesOut: this.bytesOut,
          rightsUsed: [...this.#used],
        })
        return
      } catch {
        await sleep(attempt * CLOSE_RETRY_MS)
      }
    }
  }
}
