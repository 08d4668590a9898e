/** What the store and its reading thread say to each other: plain data. */

export interface ReadingData {
  /** The database file. */
  path: string
}

export type ReadingCall =
  /** A list that is answered in pieces of `rows` at most. */
  | { type: 'open'; cursor: number; sql: string; parameters: readonly unknown[]; rows: number }
  /** Its next piece. */
  | { type: 'read'; cursor: number }
  | { type: 'close'; cursor: number }
  | { type: 'end' }

export type ReadingAnswer =
  | { cursor: number; rows: unknown[]; isLast: boolean }
  /** `isBusy`: another time there may be room for it. */
  | { cursor: number; failure: string; isBusy: boolean }
