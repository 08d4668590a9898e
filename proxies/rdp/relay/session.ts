/** A session whose only recorded channel is an RDP desktop. */
import type { Gate, OpenSession } from '../../../src/contract/gate.ts'
import type { RdpOptions } from '../../../src/model/rdp-options.ts'
import type { Right } from '../../../src/model/rights.ts'
import type { SessionOptions } from '../../../src/model/session-options.ts'
import { Quota } from '../../session/quota.ts'
import { ProxySession } from '../../session/session.ts'
import { missingRight } from '../../wording/missing-right.ts'
import { RdpRecorder } from './recorder.ts'

export class RdpSession extends ProxySession {
  readonly options: SessionOptions
  readonly rdp: RdpOptions
  readonly isRecorded: boolean
  readonly recorder: RdpRecorder
  /** Missing rights already shown to the user. */
  readonly #missed = new Set<Right>()
  /** Missing rights to show in the next line. */
  #untold: Right[] = []

  private constructor(opened: OpenSession, gate: Gate) {
    super(opened, gate)
    this.options = opened.options
    this.rdp = opened.rdpOptions
    this.isRecorded = opened.recording !== undefined
    const { desktopQuota, maskKeys } = this.rdp
    // Deferred, so that the session does not stop inside the write that exhausts the quota.
    const end = () =>
      queueMicrotask(() => this.stop('failure', 'the recording quota of the session is used up'))
    this.recorder = new RdpRecorder({
      sink: this.recording,
      quota: Quota.ofScreens(desktopQuota, { past: 'end', end, recording: this.recording }),
      masksKeys: maskKeys,
    })
  }

  /** Creates the session and begins its recording. Rejects with TargetError if it cannot be recorded. */
  static async of(opened: OpenSession, gate: Gate): Promise<RdpSession> {
    const session = new RdpSession(opened, gate)
    await session.begin(opened)
    return session
  }

  /** Logs that a request for this right was refused. Shows it once to a user whose client requested it. */
  refuses(right: Right, destination?: string, isAskedFor = true): void {
    const isMissing = !this.rights.has(right)
    this.denied(right, isMissing ? 'the right is missing' : 'the session is for viewing only', destination)
    if (!isMissing || !isAskedFor || this.#missed.has(right)) return
    this.#missed.add(right)
    if (this.#untold.push(right) === 1) queueMicrotask(() => this.#tellMissing())
  }

  #tellMissing(): void {
    const rights = this.#untold
    this.#untold = []
    const { device } = this.target
    this.onTell?.(
      rights.length === 1
        ? missingRight(rights[0]!, device)
        : `not possible on ${device}, for want of the rights: ${rights.join(', ')}`,
    )
  }
}
