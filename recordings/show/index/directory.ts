/** What an index knows: the block of JSON at its end. */
import type { GroupPlace } from '../../container/reader.ts'

/** Channels, keyframes and chapters that an index holds at most, of each: what comes later is not in it. */
export const MAX_ENTRIES = 16 * 1024
/** Characters of a chapter's text. */
export const MAX_CHAPTER_TEXT = 200

export interface Channel {
  channel: number
  kind: string
  command?: string
  hasTerminal: boolean
  /** Present where it shows pixels: the desktop's size as it was opened. */
  desktop?: { width: number; height: number }
  /** As it was opened; that of a command's output without a terminal is 80 × 24. */
  columns: number
  rows: number
  /** Microseconds since the recording began. */
  opened: number
  /** Absent: it was not closed. */
  closed?: number
  /** Frames of output. */
  outputs: number
  /** Where reading begins for it. */
  place: Place
}

export interface Keyframe {
  channel: number
  /** It shows all frames of its channel up to this time and before its place. */
  time: number
  columns: number
  rows: number
  block: Block
  place: Place
}

/** A graphic channel's keyframe. */
export interface PictureKeyframe {
  channel: number
  /** Of the last frame that it shows, maybe in part. */
  time: number
  block: Block
  place: Place
  /** What it shows behind `place`: so many frames of any channel, and so many bytes of the payload of the next one. */
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
