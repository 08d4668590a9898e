/** One open file of an SFTP channel: what passed of it, and what is said about it when it is closed. */
import type { FileOperation } from '../../../recordings/frames.ts'
import type { Direction } from '../codec/classify.ts'
import { FXF } from '../codec/sftp.ts'
import { OrderedHash, type ReorderBudget } from './ordered-hash.ts'

/** Why a transfer that went well has no hash. */
const NOT_IN_ORDER = 'ok, no hash: not transferred in order from the beginning'
const NOT_TO_THE_END = 'ok, no hash: not transferred to the end'

export class SftpFile {
  readonly path: string
  readonly isDirectory: boolean
  readonly #flags: number
  readonly #budget: ReorderBudget
  #up: OrderedHash | undefined
  #down: OrderedHash | undefined
  /** Where the file ends, as the target said: by its size, or by an end of file. */
  #size: number | undefined
  #failure: string | undefined
  #changedOtherwise = false
  /** The size that the client gave the file: less content than that is not all of it. */
  #extended = 0

  /** `flags`: SFTP's pflags; undefined for a directory. */
  constructor(path: string, flags: number | undefined, budget: ReorderBudget) {
    this.path = path
    this.isDirectory = flags === undefined
    this.#flags = flags ?? 0
    this.#budget = budget
    // A file that is made or emptied changes without any data.
    if ((this.#flags & FXF.write) !== 0 && (this.#flags & (FXF.creat | FXF.trunc)) !== 0) this.upload()
  }

  upload(): OrderedHash {
    if (this.#up === undefined) {
      this.#up = new OrderedHash(this.#budget)
      // The target ignores offsets then: what passes goes behind what is there.
      if ((this.#flags & FXF.append) !== 0 || this.#changedOtherwise) this.#up.break()
    }
    return this.#up
  }

  download(): OrderedHash {
    this.#down ??= new OrderedHash(this.#budget)
    return this.#down
  }

  endsAt(size: number): void {
    this.#size = Math.min(size, this.#size ?? size)
  }

  /** The target's content comes from somewhere else than this channel's data. */
  changedOtherwise(): void {
    this.#changedOtherwise = true
    this.#up?.break()
  }

  /** The client sets the file's size: harmless where it cuts nothing off (scp says at the end what it wrote). */
  resized(size: number): void {
    const written = this.#up === undefined ? 0 : this.#up.contiguous
    if (written === undefined || size < written) this.changedOtherwise()
    else this.#extended = size
  }

  /** The first failure of a read or write is the transfer's result. */
  failed(reason: string): void {
    this.#failure ??= reason
  }

  /** The operations to record when the file is closed; `result` is the close's. */
  finish(result: string): FileOperation[] {
    if (this.isDirectory) return []
    const failure = this.#failure ?? (result === 'ok' ? undefined : result)
    const operations: FileOperation[] = []
    if (this.#up !== undefined) operations.push(this.#transfer('up', this.#up, failure))
    if (this.#down !== undefined) operations.push(this.#transfer('down', this.#down, failure))
    if (operations.length === 0)
      operations.push({ operation: 'open', path: this.path, result: failure ?? 'ok' })
    this.#up?.break()
    this.#down?.break()
    return operations
  }

  #transfer(direction: Direction, content: OrderedHash, failure: string | undefined): FileOperation {
    const transfer = { operation: 'transfer', path: this.path, direction, size: content.bytes }
    if (failure !== undefined) return { ...transfer, result: failure }
    const { contiguous } = content
    if (contiguous === undefined) return { ...transfer, result: NOT_IN_ORDER }
    const end = direction === 'up' ? this.#extended : this.#size
    if (end === undefined || contiguous < end) {
      return { ...transfer, result: NOT_TO_THE_END }
    }
    return { ...transfer, sha256: content.digest(), result: 'ok' }
  }
}
