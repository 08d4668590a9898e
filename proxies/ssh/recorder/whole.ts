/**
 * Records a channel without a terminal whole, in both directions, up to the quota: a shell can hide in any
 * command. Standard output and standard error share the outgoing quota, count and hash.
 */
import { type Exit, FRAME } from '../../../recordings/container/frames.ts'
import type { Quota } from '../../session/quota.ts'
import type { ScriptWatch } from '../commands/script.ts'
import type { ChannelFrames } from './frames.ts'
import { QuotaStream } from './quota-stream.ts'
import type { ChannelRecorder, RecorderEvents } from './recorder.ts'

export class WholeRecorder implements ChannelRecorder {
  readonly #frames: ChannelFrames
  readonly #input: QuotaStream
  readonly #output: QuotaStream
  readonly #script: ScriptWatch | undefined

  constructor(frames: ChannelFrames, events: RecorderEvents, quota: Quota, script?: ScriptWatch) {
    this.#script = script
    this.#frames = frames
    this.#input = new QuotaStream(frames, events, quota, 'in')
    this.#output = new QuotaStream(frames, events, quota, 'out')
  }

  fromClient(data: Uint8Array): void {
    this.#input.write(FRAME.input, data)
    // Last: the session may end over a command.
    this.#script?.fromClient(data)
  }

  fromTarget(data: Uint8Array, stderr: boolean): void {
    this.#output.write(stderr ? FRAME.errorOutput : FRAME.output, data)
  }

  resize(columns: number, rows: number): void {
    this.#frames.resize(columns, rows)
  }

  exit(exit: Exit): void {
    this.#frames.exit(exit)
  }

  close(): void {
    this.#input.close()
    this.#output.close()
    this.#frames.close()
  }
}
