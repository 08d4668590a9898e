/**
 * The index of session content: lines of commands, of files, and of output, each with its time. One
 * interface, so that another database can replace the embedded one.
 */
import type { ContentField, ContentTest } from '../search/words.ts'

/**
 * Limit of the sessions that one comparison may find; above it the result is `too_many`, without any
 * sessions.
 */
export const MAX_SESSIONS_FOUND = 20_000
/** Limit of the returned lines of one session, for one comparison. */
export const MAX_MATCHES = 1000

/** Times in milliseconds since the session began. */
export interface ContentLine {
  at: number
  /** Undefined for a line from an event, which names no channel. */
  channel: number | undefined
  text: string
}

/** An event of the audit log, as the index reads it. */
export type ContentEvent =
  /** Beginning of the session, in milliseconds since the epoch. */
  | { kind: 'begin'; session: string; begin: number }
  | { kind: 'line'; session: string; field: 'command' | 'file'; time: number; text: string }
  /** The recording was deleted: the index removes the session. */
  | { kind: 'gone'; session: string }
  /** The deletion failed: the session is back. */
  | { kind: 'back'; session: string }

/** Lines of a closed recording for the index. */
export interface RecordedLines {
  session: string
  /** Milliseconds since the epoch. */
  begin: number
  digest: string
  output: ContentLine[]
  files: ContentLine[]
  /**
   * Commands that the index already has from events are skipped: the log does not always have all of them.
   */
  commands: ContentLine[]
  /** Set if lines were left out, because there were too many. */
  isPartial: boolean
}

export interface Match {
  session: string
  field: ContentField
  at: number
  channel: number | undefined
  /** Part of the line, around the first words that were found. */
  excerpt: string
}

/** Indexed part of a session: its output whole or in part, or only its events in the audit log. */
export type Extent = 'full' | 'partial' | 'events'

/** `too_many`: more than MAX_SESSIONS_FOUND; `too_slow`: the search exceeded its time limit. */
export type FoundSessions = string[] | 'too_many' | 'too_slow'

export interface ContentIndex {
  /**
   * Returns ids of the sessions with such a line; `between` restricts them to those that began then
   * (milliseconds, `to` excluded).
   */
  sessionsWith(test: ContentTest, between?: { from: number; to: number }): Promise<FoundSessions>
  /** Returns the lines of one session that match any of the tests, in their order. */
  matches(session: string, tests: readonly ContentTest[]): Promise<Match[]>
  /** Returns the newest lines of all sessions that match any of the tests, at most `limit` for each test. */
  newest(tests: readonly ContentTest[], limit: number): Promise<Match[]>
  extent(session: string): Promise<Extent>
}

/** The index, as the API uses it. */
export interface Contents {
  index: ContentIndex
  mode: 'full' | 'commands'
  /** Set if output is not indexed because only auditors can open recordings. */
  isSealed: boolean
}

/** The limit of waiting searches is reached. */
export class ContentsBusyError extends Error {
  override readonly name = 'ContentsBusyError'
}
