/** The relay's current target: its socket, its filter, and the data sent to it, in one write per turn. */
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
  /** More data can be sent. */
  onDrain: () => void
  /** The connection has closed. */
  onClosed: () => void
  /** The logon failed, with the reason. */
  onRefused: (reason: string) => void
}

export class TargetSide {
  readonly target: RdpTarget
  readonly filter: SessionFilter
  readonly #gather: Gather

  /** Nothing is received before the target has a visitor. */
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

  /** User input may be sent to the target. */
  get isIn(): boolean {
    return this.target.watch?.isIn ?? true
  }

  /** Asks the target to redraw this area. Called only for a confirmed desktop. */
  refresh(area: Rectangle): void {
    const { connection } = this.target
    connection.sendIo(buildShareData(buildRefreshRectangle(this.filter.shareId, area), connection.user))
  }

  /** Writes the gathered data now. */
  flush(): void {
    this.#gather.flush()
  }

  /** Announces the user's disconnect. */
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
