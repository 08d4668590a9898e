/** Messages between the broker and its indexing thread: plain data. */

/** A job for the index over sessions. */
export interface ContentsJob {
  /** File of the index, and the fields to store. */
  path: string
  mode: string
  /** Beginning of the session, in milliseconds since the epoch. */
  begin: number
}

export interface IndexJob {
  session: string
  /** The recording's folder. */
  directory: string
  /** The session's key: the thread has no other key. */
  key: Uint8Array
  /** Size of the closed file. */
  size: number
  digest: string
  /** Set if the recording needs its own index. */
  keyframes: boolean
  contents?: ContentsJob
}

/** `progress`: still at work. After each job `done` or `failed`. */
export type FromIndexer = { kind: 'progress' } | { kind: 'done' } | { kind: 'failed'; reason: string }
