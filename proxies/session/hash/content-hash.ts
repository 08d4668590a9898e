/** SHA-256 of what passes, wherever it is computed. */
import { createHash } from 'node:crypto'

export interface ContentHash {
  /** The bytes are the caller's again when it returns. */
  update(bytes: Uint8Array): void
  /** Hands over the hash in hexadecimal, at once or later; undefined: none could be made. Nothing may follow. */
  digest(done: (sha256: string | undefined) => void): void
  /** No digest will be asked for. */
  drop(): void
}

export type NewHash = () => ContentHash

/** How content is hashed, and who is told that the last frame of what is recorded there is written. */
export interface Hashing {
  newHash: NewHash
  onClosed(): void
}

/** Computed by the caller's thread. */
export function hashHere(): ContentHash {
  const hash = createHash('sha256')
  return {
    update: (bytes) => void hash.update(bytes),
    digest: (done) => done(hash.digest('hex')),
    drop: () => undefined,
  }
}
