/** One open file of an SFTP channel: its transferred content, and the operations recorded at its close. */
import type { FileOperation } from '../../../recordings/container/frames.ts'
import type { Direction } from '../codec/classify.ts'
import { FXF } from '../codec/sftp.ts'
import { Changes } from '../files/changes.ts'
import type { ChannelFrames } from './frames.ts'
import { OrderedHash, type ReorderBudget } from './ordered-hash.ts'

/** Reasons why a successful transfer has no hash. */
const NOT_IN_ORDER = 'ok, no hash: not transferred in order from the beginning'
export const NO_HASH = 'ok, no hash: it could not be computed'
const NOT_TO_THE_END = 'ok, no hash: not transferred to the end'
const NOT_NEW = 'ok, no hash: neither opened as a new or empty file nor cut where it ends'
export const DISTURBED = 'ok, no hash: files were changed by another way meanwhile, and it may be one of them'

/** Results of successful transfers without a hash. */
export const WITHOUT_HASH: ReadonlySet<string> = new Set([
  NOT_IN_ORDER,
  NO_HASH,
  NOT_TO_THE_END,
  NOT_NEW,
  DISTURBED,
])

/** The parameters of an OPEN or OPENDIR. */
export interface Opening {
  path: string
  /** SFTP's pflags. Absent for a directory. */
  flags?: number
  /** The size in the attributes of the client's request. */
  size?: number
}

export class SftpFile {
  readonly path: string
  readonly isDirectory: boolean
  /** Changes to the file through this handle. */
  readonly changes: Changes
  readonly #flags: number
  readonly #budget: ReorderBudget
  readonly #frames: ChannelFrames
  readonly #othersChanged: () => boolean
  #up: OrderedHash | undefined
  #down: OrderedHash | undefined
  /** The end of the file as the target reports it: by its size, or by an end of file. */
  #size: number | undefined
  #failure: string | undefined
  #changedOtherwise = false
  /** The size that the client set: less content than that is not the whole file. */
  #extended: number
  /** The size to which the target has truncated or extended the file. */
  #cut: number | undefined
  /** Reads and writes under way. */
  #pending = 0
  #isClosing = false
  #closed: string | undefined
  #disturbed: boolean | undefined

  /** Create this when the file is requested: other changes are tracked from then on. */
  constructor({ path, flags, size }: Opening, budget: ReorderBudget, frames: ChannelFrames, all: Changes) {
    this.path = path
    this.isDirectory = flags === undefined
    this.changes = new Changes(all)
    this.#othersChanged = this.changes.watch()
    this.#flags = flags ?? 0
    this.#extended = size ?? 0
    this.#budget = budget
    this.#frames = frames
  }

  /** Called when the target has opened the file. */
  opened(): void {
    // Creating or emptying a file changes it without any data.
    if ((this.#flags & FXF.write) !== 0 && (this.#flags & (FXF.creat | FXF.trunc)) !== 0) this.#uploaded()
  }

  /** Call when a WRITE is forwarded. Returns the hash for its data. */
  upload(): OrderedHash {
    this.#pending++
    const content = this.#uploaded()
    // A target that works in order rejects a WRITE after CLOSE.
    if (this.#isClosing) content.break()
    return content
  }

  /** Call when a READ is forwarded. */
  download(): void {
    this.#pending++
    this.#downloaded()
  }

  /** Call when a READ's data arrives. Returns the hash for it. */
  downloaded(): OrderedHash {
    return this.#downloaded()
  }

  /** Call when a READ or WRITE has its complete reply. */
  answered(): void {
    this.#pending--
    this.#settle()
  }

  /** Call when CLOSE is forwarded. Later changes through other handles do not affect this transfer. */
  closing(): void {
    this.#isClosing = true
    this.#settle()
  }

  /** Notes the target's reply to CLOSE. */
  closed(result: string): void {
    this.#closed = result
  }

  /** The result once the file is closed and no replies are pending. Undefined before. */
  get outcome(): string | undefined {
    return this.#pending === 0 ? this.#closed : undefined
  }

  endsAt(size: number): void {
    this.#size = Math.min(size, this.#size ?? size)
  }

  /** Notes that the target's content does not come from this channel's data. */
  changedOtherwise(): void {
    this.#changedOtherwise = true
    this.#up?.break()
  }

  /** Notes the size that the client sets: harmless unless it truncates (scp finally sets the size sent). */
  resized(size: number): void {
    const written = this.#up === undefined ? 0 : this.#up.contiguous
    if (written === undefined || size < written) this.changedOtherwise()
    else this.#extended = Math.max(this.#extended, size)
  }

  /** Notes that the target has set the size. */
  cutAt(size: number): void {
    this.#cut = size
  }

  /** The first failure of a read or write is the transfer's result. */
  failed(reason: string): void {
    this.#failure ??= reason
  }

  /** Writes the closed file's operations, each with a hash once that is computed. */
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

  #settle(): void {
    if (this.#isClosing && this.#pending === 0) this.#disturbed ??= this.#othersChanged()
  }

  #uploaded(): OrderedHash {
    if (this.#up === undefined) {
      this.#up = new OrderedHash(this.#budget, this.#frames.newHash())
      // The target ignores offsets when it appends: the data follows the existing content.
      if (this.#changedOtherwise || this.#has(FXF.append)) this.#up.break()
    }
    return this.#up
  }

  #downloaded(): OrderedHash {
    this.#down ??= new OrderedHash(this.#budget, this.#frames.newHash())
    return this.#down
  }

  /**
   * Whether this handle wrote all of the file's content: the file was empty, or was truncated at the end of
   * the data, as scp does.
   */
  get #isWhole(): boolean {
    const wasEmpty = this.#has(FXF.write | FXF.trunc) || this.#has(FXF.write | FXF.creat | FXF.excl)
    return wasEmpty || (this.#cut !== undefined && this.#cut === this.#up?.contiguous)
  }

  #has(flags: number): boolean {
    return (this.#flags & flags) === flags
  }

  #transfer(
    direction: Direction,
    content: OrderedHash,
    failure: string | undefined,
    write: (operation: FileOperation) => void,
  ): void {
    const transfer = { operation: 'transfer', path: this.path, direction, size: content.bytes }
    const flaw = failure ?? this.#flawOf(direction, content)
    if (flaw !== undefined) write({ ...transfer, result: flaw })
    else
      this.#frames.hashed(content.hash, (sha256) =>
        write(
          sha256 === undefined ? { ...transfer, result: NO_HASH } : { ...transfer, sha256, result: 'ok' },
        ),
      )
  }

  /** Returns the reason why the hash of the data is not the file's, or undefined if it is. */
  #flawOf(direction: Direction, content: OrderedHash): string | undefined {
    const { contiguous } = content
    if (direction === 'up') {
      if (contiguous === undefined) return NOT_IN_ORDER
      if (!this.#isWhole) return NOT_NEW
      if (contiguous < this.#extended) return NOT_TO_THE_END
    } else {
      if (contiguous === undefined) return NOT_IN_ORDER
      // The end that the target reported must match the data received.
      if (contiguous !== this.#size) return NOT_TO_THE_END
      if (this.#up !== undefined) return DISTURBED
    }
    return (this.#disturbed ?? this.#othersChanged()) ? DISTURBED : undefined
  }
}
