/**
 * Records a channel with a terminal: output whole, resizes, and input as far as the target echoed it (echo.ts);
 * the rest of the input is a count. Command lines are those that are read from the screen (commands/).
 */
import { type Exit, FRAME } from '../../../recordings/frames.ts'
import type { CommandWatch } from '../commands/watch.ts'
import { Echo } from './echo.ts'
import type { ChannelFrames } from './frames.ts'
import type { ChannelRecorder } from './recorder.ts'

export class TerminalRecorder implements ChannelRecorder {
  readonly #frames: ChannelFrames
  readonly #echo: Echo
  readonly #commands: CommandWatch

  constructor(frames: ChannelFrames, commands: CommandWatch) {
    this.#frames = frames
    this.#commands = commands
    this.#echo = new Echo({
      echoed: (line) => {
        this.#writeWithheld()
        frames.stream(FRAME.input, line)
      },
    })
  }

  admit(data: Uint8Array): number {
    return this.#commands.admit(data)
  }

  fromClient(data: Uint8Array): void {
    this.#echo.input(data)
    this.#commands.fromClient(data)
  }

  fromTarget(data: Uint8Array, stderr: boolean): void {
    this.#echo.output(data)
    this.#writeWithheld()
    this.#frames.stream(stderr ? FRAME.errorOutput : FRAME.output, data)
    // Last: the session may end over a command.
    this.#commands.fromTarget(data)
  }

  resize(columns: number, rows: number): void {
    this.#frames.resize(columns, rows)
    this.#commands.resize(columns, rows)
  }

  exit(exit: Exit): void {
    this.#frames.exit(exit)
  }

  end(): void {
    this.#commands.end()
    this.#echo.end()
    this.#writeWithheld()
    this.#frames.close()
  }

  #writeWithheld(): void {
    const count = this.#echo.takeWithheld()
    if (count > 0) this.#frames.withheld(count)
  }
}
