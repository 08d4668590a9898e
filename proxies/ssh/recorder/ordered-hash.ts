/**
 * The SHA-256 of a file whose pieces pass by, not always in order: replies of SFTP may be short or overtake
 * each other. Pieces that come early wait in a bounded buffer; beyond it there is no hash, only a count.
 */
import { Buffer } from 'node:buffer'
import type { ContentHash } from '../../session/hash/content-hash.ts'

/** Bytes of all files of one channel that wait for earlier pieces. */
export const REORDER_LIMIT = 2 * 1024 * 1024
/** What keeping a piece costs beside its bytes: without it, pieces of one byte would have no bound. */
const PIECE_OVERHEAD = 256

/** What the files of a channel share. */
export class ReorderBudget {
  #left: number

  constructor(limit = REORDER_LIMIT) {
    this.#left = limit
  }

  /** Room for a piece of `bytes`; false: there is none. */
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

  /** All bytes that passed, counted twice when they passed twice. */
  get bytes(): number {
    return this.#bytes
  }

  /** The offset up to which everything passed, from 0 on; undefined: the bytes were in no order. */
  get contiguous(): number | undefined {
    return this.#broken || this.#early.size > 0 ? undefined : this.#next
  }

  /** `bytes` belong at `offset` of the file. The caller keeps the buffer. */
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

  /** From here on there is no hash: the content is not what passed. */
  break(): void {
    this.#broken = true
    this.#hash.drop()
    for (const piece of this.#early.values()) this.#budget.give(piece.length)
    this.#early.clear()
  }

  /** Of the bytes from 0 to `contiguous`, to be asked for once. */
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
