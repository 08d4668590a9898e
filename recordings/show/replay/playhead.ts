/** A position in a channel: the screen there, and the frames that follow. */
import type { Frame } from '../../container/frames.ts'
import type { Shown } from '../../decode/terminal/screen.ts'

export class Playhead<T extends Shown> {
  readonly screen: T
  readonly #frames: AsyncGenerator<Frame>
  #next: Frame | undefined
  #time: number

  private constructor(screen: T, time: number, frames: AsyncGenerator<Frame>) {
    this.screen = screen
    this.#frames = frames
    this.#time = time
  }

  /**
   * `screen` is the channel's state at `from`, where its frames begin; the playhead then advances to `time`.
   */
  static async begin<T extends Shown>(
    screen: T,
    from: number,
    frames: AsyncGenerator<Frame>,
    time: number,
  ): Promise<Playhead<T>> {
    const playhead = new Playhead(screen, from, frames)
    await playhead.#read()
    await playhead.advance(time)
    return playhead
  }

  /** Microseconds since the recording began. */
  get time(): number {
    return this.#time
  }

  /** The next frame. Undefined at the channel's end. */
  get next(): Frame | undefined {
    return this.#next
  }

  /** Draws the next frame; the screen has to settle before it is read. */
  async step(): Promise<Frame | undefined> {
    const frame = this.#next
    if (!frame) return undefined
    const drawing = this.screen.apply(frame)
    if (drawing) await drawing
    this.#time = Math.max(this.#time, frame.time)
    await this.#read()
    return frame
  }

  /** Draws all frames up to and including `time`; the screen has settled then. */
  async advance(time: number): Promise<void> {
    while (this.#next && this.#next.time <= time) await this.step()
    await this.screen.settle()
    this.#time = Math.max(this.#time, time)
  }

  async close(): Promise<void> {
    this.screen.destroy()
    await this.#frames.return(undefined)
  }

  async #read(): Promise<void> {
    const { value, done } = await this.#frames.next()
    this.#next = done ? undefined : value
  }
}
