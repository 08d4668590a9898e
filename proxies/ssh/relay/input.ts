/**
 * Forwards a channel's unfiltered data from the client to the target, as far as the recorder admits it: a
 * command line is read and checked before its Return is sent.
 */
import type { Buffer } from 'node:buffer'
import type { ChannelEnd } from '../channel/channel-end.ts'
import type { Flow } from '../channel/flow.ts'
import { buildData } from '../codec/build.ts'
import type { SshSession } from '../policy/session.ts'
import type { ChannelRecorder } from '../recorder/recorder.ts'

export interface InputSurroundings {
  /** The channel's number. */
  readonly id: number
  readonly session: Pick<SshSession, 'bytesIn' | 'signs'>
  readonly target: ChannelEnd
  /** Client to target. */
  readonly flow: Flow
  readonly recorder: ChannelRecorder | undefined
  /** False once the channel has ended: nothing may be sent. */
  readonly isPassing: boolean
}

export class Input {
  readonly #around: InputSurroundings
  /** Changes data in place before it is recorded and sent. */
  edit: ((data: Uint8Array) => void) | undefined

  constructor(around: InputSurroundings) {
    this.#around = around
  }

  /**
   * Sends a message's data as far as the recorder and the receiver's window admit it now. Returns the rest,
   * which must wait, as a message.
   */
  pass(payload: Buffer, data: Uint8Array): Buffer | undefined {
    const around = this.#around
    const { id, session, target, flow } = around
    if (data.length > flow.window) return payload
    // A target that has closed the channel accepts nothing.
    if (target.closedTo) return undefined
    for (let rest = data; rest.length > 0; ) {
      const { recorder } = around
      const admitted = recorder?.admit?.(rest) ?? rest.length
      // Small waiting messages may have been joined to one that is larger than the target accepts.
      const count = Math.min(admitted, target.maxPacket)
      if (!around.isPassing) return undefined
      if (count === 0) return rest === data ? payload : buildData(id, rest)
      const part = rest.subarray(0, count)
      rest = rest.subarray(count)
      this.edit?.(part)
      flow.forwarded(count)
      session.bytesIn += count
      session.signs++
      const message = count === data.length ? payload : buildData(id, part)
      if (recorder?.mayFollow) {
        target.pass(message)
        recorder.fromClient(part)
      } else {
        recorder?.fromClient(part)
        if (!around.isPassing) return undefined
        target.pass(message)
      }
    }
    return undefined
  }
}
