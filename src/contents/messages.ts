/** Messages between the broker and its search thread: plain data. */
import type { ContentDatabase } from './database.ts'

/** Requests to the thread: methods of the database. */
export type ContentMethod =
  | 'sequence'
  | 'addEvents'
  | 'has'
  | 'extent'
  | 'sessionsWith'
  | 'matches'
  | 'newest'

export type ContentCall = {
  [M in ContentMethod]: { id: number; method: M; args: Parameters<ContentDatabase[M]> }
}[ContentMethod]

export type ContentAnswer = { id: number; value: unknown } | { id: number; failure: string }

export interface ContentThreadData {
  path: string
  mode: string
}
