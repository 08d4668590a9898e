/** The target that a relay has just now: its socket, what filters it, and what is sent to it, in one write for each turn. */
import type { Rectangle } from '../../desktop/screens/scene.ts'
import { end } from '../../net/disconnect.ts'
import { Gather } from '../../net/gather.ts'
import { Sender } from '../../net/sender.ts'
import type { RdpTarget } from '../back/target.ts'
import { buildRefreshRectangle } from '../codec/session-pdus.ts'
import { buildShareData } from '../codec/share.ts'
import { SessionFilter, type SessionVisitor } from '../connection/session-filter.ts'

export interface TargetSideOptions {
  target: RdpTarget
  visitor: SessionVisitor
  onData: (chunk: Uint8Array) => void
  /** More may be sent. */
  onDrain: () => void
  /** The connection is gone. */
  onClosed: () => void
  /** The account is not in, and why. */
  onRefused: (reason: string) => void
}

export class TargetSide {
  readonly target: RdpTarget
  readonly filter: SessionFilter
  readonly #gather: Gather

  /** Nothing comes before the target has a visitor. */
  constructor({ target, visitor, onData, onDrain, onClosed, onRefused }: TargetSideOptions) {
    this.target = target
    this.filter = new SessionFilter(visitor, target.connection.user)
    const { stream, watch } = target
    const sender = new Sender(stream)
    this.#gather = new Gather((bytes) => sender.send(bytes))
    target.onSend = (bytes) => this.#gather.add(bytes)
    stream.onData = onData
    stream.onClosed = onClosed
    stream.onDrain = () => {
      sender.recycle()
      onDrain()
    }
    if (watch) {
      watch.onJudged = (judgement) => {
        if (judgement !== 'in') onRefused(judgement.refused)
      }
    }
  }

  /** What the user does may go to it. */
  get isIn(): boolean {
    return this.target.watch?.isIn ?? true
  }

  /** It is to draw that part of its desktop again; nobody asks but of one that is agreed on. */
  refresh(area: Rectangle): void {
    const { connection } = this.target
    connection.sendIo(buildShareData(buildRefreshRectangle(this.filter.shareId, area), connection.user))
  }

  /** What has gathered is written now. */
  flush(): void {
    this.#gather.flush()
  }

  /** Tells it that the user has gone. */
  close(): void {
    const { stream, connection, watch } = this.target
    watch?.stop()
    stream.onClosed = undefined
    stream.onData = undefined
    connection.close()
    this.flush()
    end(stream)
  }
}
