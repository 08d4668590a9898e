/** Messages between the store and its reading thread: plain data. */
import type { SearchError } from '../../search/grammar.ts'

export interface ReadingData {
  /** Path of the database file. */
  path: string
}

export type ReadingCall =
  /** Opens a list that is read in pieces of at most `rows`. */
  | { type: 'open'; cursor: number; sql: string; parameters: readonly unknown[]; rows: number }
  /** Requests its next piece. */
  | { type: 'read'; cursor: number }
  | { type: 'close'; cursor: number }
  | { type: 'end' }

export type ReadingAnswer =
  | { cursor: number; rows: unknown[]; isLast: boolean }
  /** `isBusy`: there may be room later. `search`: fault of the search, not of the database. */
  | { cursor: number; failure: string; isBusy: boolean; search?: SearchFlaw }

export type SearchFlaw = Pick<SearchError, 'fault' | 'position' | 'expected' | 'found'>
