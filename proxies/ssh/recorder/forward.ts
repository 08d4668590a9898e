/**
 * Records a forwarded connection: its destination, and its bytes each way. Its data is another protocol's,
 * mostly encrypted, and is not stored.
 */
import type { ChannelOpen, FrameSink } from '../../../recordings/container/frames.ts'
import { ChannelFrames } from './frames.ts'
import type { ChannelRecorder } from './recorder.ts'

export type Forwarded = Pick<ChannelOpen, 'subprotocol' | 'destination'> & {
  kind:
    | 'direct-tcpip'
    | 'direct-streamlocal'
    | 'forwarded-tcpip'
    | 'forwarded-streamlocal'
    | 'x11'
    | 'auth-agent'
}

export class ForwardRecorder implements ChannelRecorder {
  readonly #frames: ChannelFrames
  #in = 0
  #out = 0

  /** `channel` is the channel's number in the recording. */
  constructor(sink: FrameSink, channel: number, forwarded: Forwarded) {
    this.#frames = new ChannelFrames(sink, channel)
    this.#frames.open(forwarded)
  }

  fromClient(data: Uint8Array): void {
    this.#in += data.length
  }

  fromTarget(data: Uint8Array): void {
    this.#out += data.length
  }

  resize(): void {}

  exit(): void {}

  close(): void {
    this.#frames.unrecorded({ direction: 'in', reason: 'forwarded', bytes: this.#in })
    this.#frames.unrecorded({ direction: 'out', reason: 'forwarded', bytes: this.#out })
    this.#frames.close()
  }
}
