/** What an index knows: the block of JSON at its end. */
import type { GroupPlace } from '../reader.ts'

/** Channels, keyframes and chapters that an index holds at most, of each: what comes later is not in it. */
export const MAX_ENTRIES = 16 * 1024
/** Characters of a chapter's text. */
export const MAX_CHAPTER_TEXT = 200

export interface Channel {
  channel: number
  kind: string
  command?: string
  hasTerminal: boolean
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
  /** The block that holds it: its number, offset and length. */
  block: [number, number, number]
  place: Place
}

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
  chapters: Chapter[]
}

export function packPlace({ offset, sequence, group, head }: GroupPlace): Place {
  return { offset, sequence, group, head: head.toString('hex') }
}

export function unpackPlace({ offset, sequence, group, head }: Place): GroupPlace {
  return { offset, sequence, group, head: Buffer.from(head, 'hex') }
}
