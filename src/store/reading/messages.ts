/** What the store and its reading thread say to each other: plain data. */

export interface ReadingData {
  /** The database file. */
  path: string
}

export type ReadingCall =
  | { type: 'open'; cursor: number; sql: string; parameters: readonly unknown[] }
  /** The next rows, `rows` at most. */
  | { type: 'read'; cursor: number; rows: number }
  | { type: 'close'; cursor: number }
  | { type: 'end' }

export type ReadingAnswer =
  | { cursor: number; rows: unknown[]; isLast: boolean }
  | { cursor: number; failure: string }
