/**
 * Records a channel with a terminal: output whole up to the quota, resizes, and echoed input (echo.ts); other
 * input is only counted. Command lines are read from the screen (commands/).
 */
import { type Exit, FRAME } from '../../../recordings/container/frames.ts'
import type { Quota } from '../../session/quota.ts'
import type { CommandWatch } from '../commands/watch.ts'
import { Echo } from './echo.ts'
import type { ChannelFrames } from './frames.ts'
import { QuotaStream } from './quota-stream.ts'
import type { ChannelRecorder, RecorderEvents } from './recorder.ts'
import { Stopped } from './stopped.ts'

export class TerminalRecorder implements ChannelRecorder {
  readonly mayFollow = true
  readonly #frames: ChannelFrames
  readonly #input: QuotaStream
  readonly #output: QuotaStream
  readonly #echo: Echo
  readonly #commands: CommandWatch
  readonly #stopped = new Stopped()

  constructor(frames: ChannelFrames, events: RecorderEvents, quota: Quota, commands: CommandWatch) {
    this.#frames = frames
    this.#input = new QuotaStream(frames, events, quota, 'in')
    this.#output = new QuotaStream(frames, events, quota, 'out')
    this.#commands = commands
    this.#echo = new Echo({
      echoed: (line) => {
        this.#writeWithheld()
        this.#input.write(FRAME.input, line)
      },
    })
  }

  admit(data: Uint8Array): number {
    return this.#commands.admit(data)
  }

  get isHolding(): boolean {
    return this.#commands.isHolding
  }

  get isAsking(): boolean {
    return this.#commands.isAsking
  }

  giveUp(reason: string): void {
    this.#commands.giveUp(reason)
  }

  fromClient(data: Uint8Array): void {
    this.#echo.input(data)
    this.#stopped.typed(data)
    this.#commands.fromClient(data)
  }

  fromTarget(data: Uint8Array, stderr: boolean): void {
    this.#echo.output(data)
    this.#writeWithheld()
    this.#output.write(stderr ? FRAME.errorOutput : FRAME.output, data)
    // Last: the session may end over a command.
    this.#commands.fromTarget(data)
  }

  awaken(): Uint8Array | undefined {
    return this.#stopped.release
  }

  resize(columns: number, rows: number): void {
    this.#frames.resize(columns, rows)
    this.#commands.resize(columns, rows)
  }

  exit(exit: Exit): void {
    this.#frames.exit(exit)
  }

  close(): void {
    this.#commands.close()
    this.#echo.close()
    this.#writeWithheld()
    this.#input.close()
    this.#output.close()
    this.#frames.close()
  }

  #writeWithheld(): void {
    const count = this.#echo.takeWithheld()
    if (count > 0) this.#frames.withheld(count)
  }
}
