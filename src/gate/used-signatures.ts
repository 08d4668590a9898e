/**
 * The data that accepted public-key proofs have signed (RFC 4252 7). It has the session id of one key exchange, so an
 * honest proxy sends it once; one that was taken over could sign its users in again and again with it.
 */
import { createHash } from 'node:crypto'

/** Limit of remembered proofs; the oldest is forgotten first. */
const MAX_KEPT = 100_000

export class UsedSignatures {
  readonly #kept = new Set<string>()

  /** Returns false for data that was used before, and remembers it. */
  isNew(data: Uint8Array): boolean {
    const digest = createHash('sha256').update(data).digest('base64')
    if (this.#kept.has(digest)) return false
    this.#kept.add(digest)
    const [oldest] = this.#kept
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest)
    return true
  }
}
