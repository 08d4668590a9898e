/**
 * A recording's file as its writer sees it. The process that owns the file may be another one: all values are
 * plain data, and the owner cuts, syncs and checks the disk by itself.
 */
import { MAX_BATCH, MAX_BATCH_GROUPS } from './format/limits.ts'
import type { Part } from './held.ts'

/**
 * Limits of one append: a full batch and its checkpoint. A group has five parts, with at most 128 bytes beside
 * its frames.
 */
export const MAX_APPEND_PARTS = 5 * MAX_BATCH_GROUPS + 8
export const MAX_APPEND = MAX_BATCH + 128 * MAX_BATCH_GROUPS + 1024

export interface RecordingFile {
  /**
   * Resolves when the parts are on the disk, behind the `offset` bytes that were there before. On failure
   * nothing of them is kept, and this rejects. Held parts come only where the sealing thread can write them.
   */
  append(offset: number, parts: readonly Part[]): Promise<Appended>
  close(): Promise<void>
}

/** Creates the file with its first bytes. On failure no file is left, and this rejects. */
export type CreateFile = (first: readonly Uint8Array[]) => Promise<RecordingFile>

/** The parts are on the disk. With a fault the recording has to end, while there is room for its end. */
export interface Appended {
  fault?: { message: string; isNoSpace: boolean }
}

/** The volume has less free space than required. */
export class NoSpaceError extends Error {
  override name = 'NoSpaceError'
}
