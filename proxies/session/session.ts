/**
 * A session of the gate in a proxy, whatever its protocol: its rights, recording, events and end. Every cause
 * that ends a session comes together here: the broker's request, a recording that cannot be written, the
 * audit log.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { FRAME } from '../../recordings/container/frames.ts'
import { NoSpaceError } from '../../recordings/container/recording-file.ts'
import type { Gate, GateNotice, OpenSession, ProxyEventCode, ProxyFields } from '../../src/contract/gate.ts'
import type { Right } from '../../src/model/rights.ts'
import type { SessionOptions } from '../../src/model/session-options.ts'
import { TargetError } from '../wording/errors.ts'
import { EventQueue } from './event-queue.ts'
import { GateFile } from './gate-file.ts'
import { CLOSE_ATTEMPTS, CLOSE_RETRY_MS, MAX_DENIALS } from './limits.ts'
import { SessionRecording } from './session-recording.ts'
import { Suspension } from './suspension.ts'

export type GuestChange = (GateNotice & { type: 'guest' })['change']
export type SessionResult = 'success' | 'failure' | 'killed'

export class ProxySession {
  readonly id: string
  readonly user: string
  readonly target: OpenSession['target']
  readonly rights: ReadonlySet<Right>
  /** True if output waits for its recording. */
  readonly isStrict: boolean
  readonly recording: SessionRecording
  readonly suspension: Suspension
  /** Bytes forwarded from the client to the target, and back. */
  bytesIn = 0
  bytesOut = 0
  /** Counts signs of the user's presence: typed input and other activity. */
  signs = 0
  /** Set by the relay. Called when the session has to end now. */
  onStop: ((result: SessionResult, reason: string) => void) | undefined
  /** Set by the relay. Shows a line to the user. */
  onTell: ((text: string) => void) | undefined
  /** Set by the relay. Called with the broker's decision on the guest of an invitation. */
  onGuest: ((invitation: string, change: GuestChange) => void) | undefined
  /** Set by the relay. Called when the recording accepts data again. */
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
    this.suspension = new Suspension(opened.isSuspended?.reason)
    this.#pastMinFree = opened.options.pastMinFree
    this.#gate = gate
    this.recording = new SessionRecording({
      create: (first) => GateFile.create(gate, session, first),
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
   * Begins the recording of the session that the gate has opened. On failure ends the session (invariant 2):
   * reports it to the gate and throws.
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

  /** Stops the session with a reason, which is kept until the relay has set `onStop`. */
  stop(result: SessionResult, reason: string): void {
    if (this.#stopped) return
    this.#stopped = { result, reason }
    this.onStop?.(result, reason)
  }

  /** Returns the reason for a stop before the relay took over, or undefined if there was none. */
  get stopped(): { result: SessionResult; reason: string } | undefined {
    return this.#stopped
  }

  /** True while the recording still holds earlier data: nothing more should be read. */
  get isFull(): boolean {
    return this.#events.isFull || this.recording.isFull
  }

  /** Logs an event without waiting for the audit log; a failure to write it ends the session. */
  tell<C extends ProxyEventCode>(code: C, fields: ProxyFields<C>): void {
    this.#events.tell(code, fields)
  }

  /** Resolves when the event is in the audit log. */
  audit<C extends ProxyEventCode>(code: C, fields: ProxyFields<C>): Promise<void> {
    return this.#events.write(code, fields)
  }

  /** Notes the use of a right for the session's account. */
  uses(right: Right): void {
    this.#used.add(right)
  }

  /** Logs that an operation is allowed by this right. Resolves when the event is in the audit log. */
  opens(right: Right, fields: ProxyFields<'channel.open'> = {}): Promise<void> {
    this.uses(right)
    return this.audit('channel.open', { subprotocol: right, ...fields })
  }

  /**
   * Logs a refusal without waiting for the audit log. A failure to write it ends the session, and so do too
   * many refusals, because all sessions share the log.
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

  /** Counts a refusal. Returns false if there were too many, and ends the session. */
  protected mayDeny(): boolean {
    if (this.#denials++ === MAX_DENIALS) this.stop('failure', 'too many requests that are not allowed')
    return this.#denials <= MAX_DENIALS
  }

  /** Seals the recording and reports the session's end. Safe to call again: only the first call counts. */
  close(result: SessionResult, reason?: string): Promise<void> {
    this.#ending ??= this.#close(this.#stopped?.result ?? result, this.#stopped?.reason ?? reason)
    return this.#ending
  }

  /** Reports the bytes so far. Never rejects: without an answer they are not known. */
  reportCount(): void {
    const { id: session, bytesIn, bytesOut } = this
    this.#gate.counted({ session, bytesIn, bytesOut }).catch(() => undefined)
  }

  /** Logs the last events, after the recording is sealed. */
  protected tellRest(): void {}

  /** Never rejects: a session whose end cannot be reported is found at the broker's next start. */
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
