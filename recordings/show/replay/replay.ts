/**
 * A recording opened for replay: any moment of any channel, at the same cost wherever it lies. The index says where
 * to begin; where there is none that fits, it is made first.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { INDEX_FILE_NAME, SALT_LENGTH } from '../../container/format/index.ts'
import { FRAME, type Frame } from '../../container/frames.ts'
import { OpenedRecording } from '../../container/opened.ts'
import { runPass } from '../../container/pass.ts'
import type { PlacedGroup } from '../../container/reader.ts'
import { painterOf } from '../../decode/open-graphics.ts'
import { Screen } from '../../decode/terminal/screen.ts'
import type { CatalogEntry } from '../../storage/catalog-entry.ts'
import { IndexBuilder } from '../index/builder.ts'
import {
  type Channel,
  type Directory,
  type Keyframe,
  type PictureKeyframe,
  unpackPlace,
} from '../index/directory.ts'
import { RecordingIndex } from '../index/reader.ts'
import { Desktop } from './desktop.ts'
import { Playhead } from './playhead.ts'

/** The digest of a file that is not closed: no index of it is kept. */
const NO_DIGEST = '0'.repeat(64)

export class Replay {
  readonly #recording: OpenedRecording
  readonly #index: RecordingIndex

  private constructor(recording: OpenedRecording, index: RecordingIndex) {
    this.#recording = recording
    this.#index = index
  }

  /** Opens a recording; of a running session, the part on the disk at this moment. Throws RecordingError. */
  static async open(entry: CatalogEntry, key: Uint8Array): Promise<Replay> {
    const recording = await OpenedRecording.open(entry.directory, key)
    try {
      return new Replay(recording, await indexOf(recording, entry, key))
    } catch (error) {
      await recording.close()
      throw error
    }
  }

  get header(): OpenedRecording['header'] {
    return this.#recording.header
  }

  get directory(): Directory {
    return this.#index.directory
  }

  /** The channel that one most likely wants to see: the first with a terminal, else the first with output. */
  get mainChannel(): Channel | undefined {
    const { channels } = this.directory
    return (
      channels.find(({ hasTerminal, outputs }) => hasTerminal && outputs > 0) ??
      channels.find(({ outputs }) => outputs > 0) ??
      channels[0]
    )
  }

  /** The channel's screen at a time, in microseconds since the recording began; its frames follow from there. */
  async at(channel: Channel, time: number): Promise<Playhead<Screen>> {
    const { keyframes } = this.directory
    for (let at = lastBefore(keyframes, time); at >= 0; at--) {
      const keyframe = keyframes[at]!
      if (keyframe.time < channel.opened) break
      if (keyframe.channel !== channel.channel) continue
      const snapshot = await this.#index.snapshot(keyframe)
      if (snapshot === undefined) continue
      const screen = new Screen(keyframe, channel.hasTerminal)
      await screen.emulator.restore(snapshot)
      const frames = this.#framesFrom(keyframe.place)
      return await Playhead.begin(screen, keyframe.time, ofChannel(frames, channel, false), time)
    }
    const screen = new Screen(channel, channel.hasTerminal)
    return await Playhead.begin(screen, channel.opened, this.frames(channel), time)
  }

  /** The same of a graphic channel; undefined where it shows no pixels, or more than are drawn. */
  async desktopAt(channel: Channel, time: number): Promise<Playhead<Desktop> | undefined> {
    const { pictures } = this.directory
    for (let at = lastBefore(pictures, time); at >= 0; at--) {
      const keyframe = pictures[at]!
      if (keyframe.time < channel.opened) break
      if (keyframe.channel !== channel.channel) continue
      const desktop = await Desktop.restore(channel.kind, keyframe, (block) => this.#index.block(block))
      if (!desktop) continue
      const frames = behind(this.#framesFrom(keyframe.place), keyframe.skip)
      return await Playhead.begin(desktop, keyframe.time, ofChannel(frames, channel, false), time)
    }
    const frames = this.frames(channel)
    const { value: opening } = await frames.next()
    const painter = opening && painterOf(opening.payload)
    if (painter) return await Playhead.begin(new Desktop(painter), channel.opened, frames, time)
    await frames.return(undefined)
    return undefined
  }

  /** Yields all groups from the beginning. */
  groups(): AsyncGenerator<PlacedGroup> {
    return this.#recording.reader().groups()
  }

  /** Returns a keyframe's snapshot, or undefined if it is damaged. */
  snapshot(keyframe: Keyframe): Promise<string | undefined> {
    return this.#index.snapshot(keyframe)
  }

  /** Yields all frames of a channel. */
  frames(channel: Channel): AsyncGenerator<Frame> {
    return ofChannel(this.#framesFrom(channel.place), channel, true)
  }

  async close(): Promise<void> {
    await this.#index.close()
    await this.#recording.close()
  }

  #framesFrom(place: Channel['place']): AsyncGenerator<Frame> {
    return this.#recording.reader(unpackPlace(place)).frames()
  }
}

/** The frames of one channel, to its end; a number may have been given to another channel before or after. */
async function* ofChannel(
  frames: AsyncGenerator<Frame>,
  { channel, opened }: Channel,
  fromOpening: boolean,
): AsyncGenerator<Frame> {
  let isOpen = !fromOpening
  for await (const frame of frames) {
    if (frame.channel !== channel) continue
    if (frame.type === FRAME.channelOpen && frame.time === opened) isOpen = true
    if (!isOpen) continue
    yield frame
    if (frame.type === FRAME.channelClose) return
  }
}

/** Skips so many frames, and so many bytes of the payload of the next one. */
async function* behind(
  frames: AsyncGenerator<Frame>,
  [count, bytes]: PictureKeyframe['skip'],
): AsyncGenerator<Frame> {
  let passed = 0
  for await (const frame of frames) {
    if (passed > count) yield frame
    else if (passed === count) yield { ...frame, payload: frame.payload.subarray(bytes) }
    passed++
  }
}

/** Index of the last keyframe that is not after `time`; -1: all are. They stand in the order of their times, nearly. */
function lastBefore(keyframes: readonly { time: number }[], time: number): number {
  return keyframes.findLastIndex((keyframe) => keyframe.time <= time)
}

async function indexOf(
  opened: OpenedRecording,
  entry: CatalogEntry,
  key: Uint8Array,
): Promise<RecordingIndex> {
  const recording = { size: entry.size, digest: entry.digest ?? NO_DIGEST }
  const beside = join(entry.directory, INDEX_FILE_NAME)
  if (entry.digest !== undefined) {
    const there = await RecordingIndex.open(beside, key, recording)
    if (there) return there
    try {
      return await make(opened, beside, key, recording)
    } catch (error) {
      // A folder that cannot be written to is no reason not to look at what is in it.
      if (!(error instanceof Error && 'syscall' in error)) throw error
    }
  }
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-index-'))
  try {
    return await make(opened, join(folder, INDEX_FILE_NAME), key, recording)
  } finally {
    // The open file stays readable until it is closed.
    await rm(folder, { recursive: true, force: true })
  }
}

async function make(
  opened: OpenedRecording,
  path: string,
  key: Uint8Array,
  recording: { size: number; digest: string },
): Promise<RecordingIndex> {
  await runPass(opened.reader(), [
    await IndexBuilder.create({ path, key, recording, salt: randomBytes(SALT_LENGTH) }),
  ])
  const made = await RecordingIndex.open(path, key, recording)
  if (made) return made
  throw new Error(
    `the index of session ${opened.header.session} was made and cannot be read: is the disk in order?`,
  )
}
