/** The directory of an index: the block of JSON at its end. */
import type { GroupPlace } from '../../container/reader.ts'

/** Limit of an index's channels, of its keyframes and of its chapters; later ones are left out. */
export const MAX_ENTRIES = 16 * 1024
/** Characters of a chapter's text. */
export const MAX_CHAPTER_TEXT = 200

export interface Channel {
  channel: number
  kind: string
  command?: string
  hasTerminal: boolean
  /** Present if the channel shows pixels: the desktop's size at the opening. */
  desktop?: { width: number; height: number }
  /** Columns at the opening; 80 × 24 for a command's output without a terminal. */
  columns: number
  rows: number
  /** Microseconds since the recording began. */
  opened: number
  /** Absent if the channel was not closed. */
  closed?: number
  /** Number of output frames. */
  outputs: number
  /** Place where reading begins for the channel. */
  place: Place
}

export interface Keyframe {
  channel: number
  /** The keyframe shows all frames of its channel up to this time and before its place. */
  time: number
  columns: number
  rows: number
  block: Block
  place: Place
}

/** A graphic channel's keyframe. */
export interface PictureKeyframe {
  channel: number
  /** Time of the last frame that the keyframe shows, possibly in part. */
  time: number
  block: Block
  place: Place
  /**
   * Content after `place` that the keyframe already shows: a number of frames of any channel, and a number of
   * bytes of the next frame's payload.
   */
  skip: [number, number]
}

/** A block of an index: its number, offset and length. */
export type Block = [number, number, number]

/** A GroupPlace; `head` in hex. */
export interface Place {
  offset: number
  sequence: number
  group: number
  head: string
}

export const CHAPTER_TYPES = ['channel', 'command', 'file', 'denied'] as const
export interface Chapter {
  type: (typeof CHAPTER_TYPES)[number]
  time: number
  channel: number
  text: string
}

export interface Directory {
  /** Time of the last frame, in microseconds since the recording began. */
  duration: number
  frames: number
  channels: Channel[]
  keyframes: Keyframe[]
  pictures: PictureKeyframe[]
  chapters: Chapter[]
}

export function packPlace({ offset, sequence, group, head }: GroupPlace): Place {
  return { offset, sequence, group, head: head.toString('hex') }
}

export function unpackPlace({ offset, sequence, group, head }: Place): GroupPlace {
  return { offset, sequence, group, head: Buffer.from(head, 'hex') }
}
