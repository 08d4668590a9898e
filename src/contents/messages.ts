/** What the broker and its search thread say to each other: plain data. */
import type { ContentDatabase } from './database.ts'

/** What the thread is asked for: methods of the database. */
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
