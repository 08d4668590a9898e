/** A session whose only channel is a desktop. */
import type { Gate, OpenSession } from '../../../src/contract/gate.ts'
import type { SessionOptions } from '../../../src/model/session-options.ts'
import type { VncOptions } from '../../../src/model/vnc-options.ts'
import { Quota } from '../../session/quota.ts'
import { ProxySession } from '../../session/session.ts'
import { ClipboardGuard } from './clipboard.ts'
import { VncRecorder } from './recorder.ts'

export class VncSession extends ProxySession {
  readonly options: SessionOptions
  readonly vnc: VncOptions
  readonly isRecorded: boolean
  readonly recorder: VncRecorder
  readonly clipboard: ClipboardGuard

  private constructor(opened: OpenSession, gate: Gate) {
    super(opened, gate)
    this.options = opened.options
    this.vnc = opened.vncOptions
    this.isRecorded = opened.recording !== undefined
    const { desktopQuota, maskKeys, viewOnly } = this.vnc
    // Deferred, since the quota is used up in the middle of a message.
    const end = () =>
      queueMicrotask(() => this.stop('failure', 'the recording quota of the session is used up'))
    this.recorder = new VncRecorder({
      sink: this.recording,
      quota: Quota.ofScreens(desktopQuota, { past: 'end', end, recording: this.recording }),
      masksKeys: maskKeys,
    })
    this.clipboard = new ClipboardGuard({
      rights: this.rights,
      isViewOnly: viewOnly,
      uses: (right) => this.uses(right),
      tell: (fields) => this.tell('clipboard', fields),
      denied: (right, reason) => this.denied(right, reason),
      record: (direction, copied) => this.recorder.clipboard(direction, copied),
      now: () => performance.now(),
    })
  }

  /** Begins the session that the gate has opened. Throws TargetError if it cannot be recorded. */
  static async of(opened: OpenSession, gate: Gate): Promise<VncSession> {
    const session = new VncSession(opened, gate)
    await session.begin(opened)
    return session
  }
}
