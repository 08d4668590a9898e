/** One pass over a recording's frames for several consumers, so that each frame is decrypted once. */
import type { Frame } from './frames.ts'
import type { GroupPlace, RecordingReader } from './reader.ts'

/** The beginning of a group, as reported to a consumer. */
export interface GroupStart {
  /** Place from which these frames can be read. Undefined in the middle of a payload. */
  place: GroupPlace | undefined
  /** Length of the group's record in bytes. */
  length: number
}

/** Receives each frame once, in order. The pass awaits each returned promise before the next call. */
export interface PassConsumer {
  /** Called before the frames of each group. */
  group?(start: GroupStart): Promise<void> | void
  frame(frame: Frame): Promise<void> | void
  /** Called after the last frame: store the result. */
  close(ending: RecordingReader['ending']): Promise<void>
  /** Called if the pass or another consumer failed: discard the result. Must not throw. */
  destroy(): Promise<void> | void
}

/**
 * Sends all frames to all consumers. Calls `progress` after each group. Throws RecordingError, and the errors
 * of a consumer, after it has destroyed all consumers.
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
          // Most calls return nothing, and a turn of the event loop for each frame would cost more than the
          // frame.
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
