/** What the broker and its indexing thread say to each other: plain data. */

/** What the index over sessions wants. */
export interface ContentsJob {
  /** Its file, and what it is made to hold. */
  path: string
  mode: string
  /** When the session began, in milliseconds since the epoch. */
  begin: number
}

export interface IndexJob {
  session: string
  /** The recording's folder. */
  directory: string
  /** The session's key: the thread has no other. */
  key: Uint8Array
  /** Of the closed file. */
  size: number
  digest: string
  /** Whether the recording needs its own index. */
  keyframes: boolean
  contents?: ContentsJob
}

/** `progress`: still at work. After each job `done` or `failed`. */
export type FromIndexer = { kind: 'progress' } | { kind: 'done' } | { kind: 'failed'; reason: string }
