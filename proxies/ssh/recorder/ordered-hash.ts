/**
 * The SHA-256 of a file whose pieces may arrive out of order: SFTP replies may be short or overtake each
 * other. Early pieces wait in a bounded buffer; beyond it there is no hash, only a count.
 */
import { Buffer } from 'node:buffer'
import type { ContentHash } from '../../session/hash/content-hash.ts'

/** Bytes that wait for earlier pieces, of all files of one channel. */
export const REORDER_LIMIT = 2 * 1024 * 1024
/** Cost of keeping a piece in addition to its bytes; it bounds the number of tiny pieces. */
const PIECE_OVERHEAD = 256

/** The budget shared by the files of a channel. */
export class ReorderBudget {
  #left: number

  constructor(limit = REORDER_LIMIT) {
    this.#left = limit
  }

  /** Reserves room for a piece of `bytes`. Returns false if there is none. */
  take(bytes: number): boolean {
    if (this.#left < bytes + PIECE_OVERHEAD) return false
    this.#left -= bytes + PIECE_OVERHEAD
    return true
  }

  give(bytes: number): void {
    this.#left += bytes + PIECE_OVERHEAD
  }
}

export class OrderedHash {
  readonly #budget: ReorderBudget
  readonly #hash: ContentHash
  readonly #early = new Map<number, Buffer>()
  #broken = false
  #next = 0
  #bytes = 0

  constructor(budget: ReorderBudget, hash: ContentHash) {
    this.#budget = budget
    this.#hash = hash
  }

  /** All bytes added; those added twice count twice. */
  get bytes(): number {
    return this.#bytes
  }

  /** The offset up to which all bytes from 0 on were added. Undefined if they were out of order. */
  get contiguous(): number | undefined {
    return this.#broken || this.#early.size > 0 ? undefined : this.#next
  }

  /** Adds `bytes` at `offset` of the file. The caller keeps the buffer. */
  add(offset: number, bytes: Uint8Array): void {
    this.#bytes += bytes.length
    if (this.#broken || bytes.length === 0) return
    if (offset === this.#next) {
      this.#append(bytes)
      if (this.#early.size > 0) this.#drain()
      return
    }
    const fits = this.#next < offset && !this.#early.has(offset)
    if (fits && this.#budget.take(bytes.length)) this.#early.set(offset, Buffer.from(bytes))
    else this.break()
  }

  /** Gives up the hash: the file's content differs from the bytes added. */
  break(): void {
    this.#broken = true
    this.#hash.drop()
    for (const piece of this.#early.values()) this.#budget.give(piece.length)
    this.#early.clear()
  }

  /** The hash of the bytes from 0 to `contiguous`; read it once. */
  get hash(): ContentHash {
    return this.#hash
  }

  #append(bytes: Uint8Array): void {
    this.#hash.update(bytes)
    this.#next += bytes.length
  }

  #drain(): void {
    for (let piece = this.#early.get(this.#next); piece !== undefined; piece = this.#early.get(this.#next)) {
      this.#early.delete(this.#next)
      this.#budget.give(piece.length)
      this.#append(piece)
    }
  }
}
