/** One pass over a recording's frames for everybody who wants something from them: decrypting is paid for once. */
import type { Frame } from './frames.ts'
import type { GroupPlace, RecordingReader } from './reader.ts'

/** What a group's beginning is to a consumer. */
export interface GroupStart {
  /** Where reading can begin for the frames from here on; undefined in the middle of a payload. */
  place: GroupPlace | undefined
  /** Bytes of the group's record. */
  length: number
}

/** Gets each frame once, in order. What it returns is waited for before the next call. */
export interface PassConsumer {
  /** Comes before the frames of each group. */
  group?(start: GroupStart): Promise<void> | void
  frame(frame: Frame): Promise<void> | void
  /** There are no more frames: keep what was made of them. */
  close(ending: RecordingReader['ending']): Promise<void>
  /** The pass failed, or another consumer did: drop it. Must not throw. */
  destroy(): Promise<void> | void
}

/**
 * Gives all frames to all consumers. `progress` is called after each group. Throws RecordingError, and what a consumer
 * throws; then all of them have been told to abandon.
 */
export async function runPass(
  reader: RecordingReader,
  consumers: readonly PassConsumer[],
  progress: () => void = () => undefined,
): Promise<void> {
  try {
    for await (const { place, isBeginning, length, frames } of reader.groups()) {
      const start = { place: isBeginning ? place : undefined, length }
      for (const consumer of consumers) await consumer.group?.(start)
      for (const frame of frames) {
        for (const consumer of consumers) {
          // Most return nothing, and a turn of the event loop for each frame would cost more than the frame.
          const waiting = consumer.frame(frame)
          if (waiting) await waiting
        }
      }
      progress()
    }
    for (const consumer of consumers) await consumer.close(reader.ending)
  } catch (error) {
    for (const consumer of consumers) await consumer.destroy()
    throw error
  }
}
