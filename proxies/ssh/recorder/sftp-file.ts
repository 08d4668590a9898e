/** One open file of an SFTP channel: what passed of it, and what is said about it when it is closed. */
import type { FileOperation } from '../../../recordings/frames.ts'
import type { Direction } from '../codec/classify.ts'
import { FXF } from '../codec/sftp.ts'
import type { ChannelFrames } from './frames.ts'
import { OrderedHash, type ReorderBudget } from './ordered-hash.ts'

/** Why a transfer that went well has no hash. */
const NOT_IN_ORDER = 'ok, no hash: not transferred in order from the beginning'
export const NO_HASH = 'ok, no hash: it could not be computed'
const NOT_TO_THE_END = 'ok, no hash: not transferred to the end'

export class SftpFile {
  readonly path: string
  readonly isDirectory: boolean
  readonly #flags: number
  readonly #budget: ReorderBudget
  readonly #frames: ChannelFrames
  #up: OrderedHash | undefined
  #down: OrderedHash | undefined
  /** Where the file ends, as the target said: by its size, or by an end of file. */
  #size: number | undefined
  #failure: string | undefined
  #changedOtherwise = false
  /** The size that the client gave the file: less content than that is not all of it. */
  #extended = 0

  /** `flags`: SFTP's pflags; undefined for a directory. */
  constructor(path: string, flags: number | undefined, budget: ReorderBudget, frames: ChannelFrames) {
    this.path = path
    this.isDirectory = flags === undefined
    this.#flags = flags ?? 0
    this.#budget = budget
    this.#frames = frames
    // A file that is made or emptied changes without any data.
    if ((this.#flags & FXF.write) !== 0 && (this.#flags & (FXF.creat | FXF.trunc)) !== 0) this.upload()
  }

  upload(): OrderedHash {
    if (this.#up === undefined) {
      this.#up = new OrderedHash(this.#budget, this.#frames.newHash())
      // The target ignores offsets then: what passes goes behind what is there.
      if ((this.#flags & FXF.append) !== 0 || this.#changedOtherwise) this.#up.break()
    }
    return this.#up
  }

  download(): OrderedHash {
    this.#down ??= new OrderedHash(this.#budget, this.#frames.newHash())
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

  /** The file is closed, with that result: has its operations written, those with a hash when that is there. */
  finish(result: string, write: (operation: FileOperation) => void): void {
    if (this.isDirectory) return
    const failure = this.#failure ?? (result === 'ok' ? undefined : result)
    if (this.#up !== undefined) this.#transfer('up', this.#up, failure, write)
    if (this.#down !== undefined) this.#transfer('down', this.#down, failure, write)
    if (this.#up === undefined && this.#down === undefined)
      write({ operation: 'open', path: this.path, result: failure ?? 'ok' })
    this.#up?.break()
    this.#down?.break()
  }

  #transfer(
    direction: Direction,
    content: OrderedHash,
    failure: string | undefined,
    write: (operation: FileOperation) => void,
  ): void {
    const transfer = { operation: 'transfer', path: this.path, direction, size: content.bytes }
    const { contiguous } = content
    const end = direction === 'up' ? this.#extended : this.#size
    if (failure !== undefined) write({ ...transfer, result: failure })
    else if (contiguous === undefined) write({ ...transfer, result: NOT_IN_ORDER })
    else if (end === undefined || contiguous < end) write({ ...transfer, result: NOT_TO_THE_END })
    else
      this.#frames.hashed(content.hash, (sha256) =>
        write(
          sha256 === undefined ? { ...transfer, result: NO_HASH } : { ...transfer, sha256, result: 'ok' },
        ),
      )
  }
}
