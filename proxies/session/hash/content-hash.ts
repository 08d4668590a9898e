/** SHA-256 of content, independent of the thread that computes it. */
import { createHash } from 'node:crypto'

export interface ContentHash {
  /** The bytes belong to the caller again when this returns. */
  update(bytes: Uint8Array): void
  /**
   * Calls `done` with the hash in hexadecimal, at once or later, or with undefined if it could not be
   * computed. No call may follow.
   */
  digest(done: (sha256: string | undefined) => void): void
  /** Drops the hash: no digest will be requested. */
  drop(): void
}

export type NewHash = () => ContentHash

/** Makes hashes, and reports when a recorder's last frame is written. */
export interface Hashing {
  newHash: NewHash
  onClosed(): void
}

/** Computes the hash on the caller's thread. */
export function hashHere(): ContentHash {
  const hash = createHash('sha256')
  return {
    update: (bytes) => void hash.update(bytes),
    digest: (done) => done(hash.digest('hex')),
    drop: () => undefined,
  }
}
