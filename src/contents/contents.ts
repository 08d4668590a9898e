/**
 * The index over what happened in sessions: lines of commands, of files, and of output, each with its time. One
 * interface, so that another database can take the embedded one's place.
 */
import type { ContentField, ContentTest } from '../search/words.ts'

/** Sessions that one comparison may find; more is told as such, and not in part. */
export const MAX_SESSIONS_FOUND = 20_000
/** Lines of one session, for one comparison, that are told. */
export const MAX_MATCHES = 1000

/** Times in milliseconds since the session began. */
export interface ContentLine {
  at: number
  /** undefined: known from an event, which names no channel. */
  channel: number | undefined
  text: string
}

/** What an event of the audit log is to the index. */
export type ContentEvent =
  /** In milliseconds since the epoch. */
  | { kind: 'begin'; session: string; begin: number }
  | { kind: 'line'; session: string; field: 'command' | 'file'; time: number; text: string }
  /** The recording was deleted: nothing of the session stays here. */
  | { kind: 'gone'; session: string }
  /** It was not deleted after all. */
  | { kind: 'back'; session: string }

/** What a closed recording is to the index. */
export interface RecordedLines {
  session: string
  /** Milliseconds since the epoch. */
  begin: number
  digest: string
  output: ContentLine[]
  files: ContentLine[]
  /** Those that stand here already, as events, are passed over: the log has not always all of them. */
  commands: ContentLine[]
  /** Lines were left out, for there were too many. */
  isPartial: boolean
}

export interface Match {
  session: string
  field: ContentField
  at: number
  channel: number | undefined
  /** Of the line, around the first words that were found. */
  excerpt: string
}

/** Of a session: its output is in the index, whole or in part; or only what the audit log has of it. */
export type Extent = 'full' | 'partial' | 'events'

/** `too_many`: more than MAX_SESSIONS_FOUND; `too_slow`: it took longer than one search may. */
export type FoundSessions = string[] | 'too_many' | 'too_slow'

export interface ContentIndex {
  /** Ids of the sessions with such a line; `between`: only of those that began then (milliseconds, `to` excluded). */
  sessionsWith(test: ContentTest, between?: { from: number; to: number }): Promise<FoundSessions>
  /** The lines of one session that meet one of the tests, in their order. */
  matches(session: string, tests: readonly ContentTest[]): Promise<Match[]>
  /** The newest lines of all sessions that meet one of the tests, `limit` at most of each test. */
  newest(tests: readonly ContentTest[], limit: number): Promise<Match[]>
  extent(session: string): Promise<Extent>
}

/** The index as those see it who answer to somebody. */
export interface Contents {
  index: ContentIndex
  mode: 'full' | 'commands'
  /** Output is not there because only auditors open recordings. */
  isSealed: boolean
}

/** Too many searches wait already. */
export class ContentsBusyError extends Error {
  override readonly name = 'ContentsBusyError'
}
