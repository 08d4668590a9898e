/** One open file of an SFTP channel: what passed of it, and what is said about it when it is closed. */
import type { FileOperation } from '../../../recordings/container/frames.ts'
import type { Direction } from '../codec/classify.ts'
import { FXF } from '../codec/sftp.ts'
import { Changes } from '../files/changes.ts'
import type { ChannelFrames } from './frames.ts'
import { OrderedHash, type ReorderBudget } from './ordered-hash.ts'

/** Why a transfer that went well has no hash. */
const NOT_IN_ORDER = 'ok, no hash: not transferred in order from the beginning'
export const NO_HASH = 'ok, no hash: it could not be computed'
const NOT_TO_THE_END = 'ok, no hash: not transferred to the end'
const NOT_NEW = 'ok, no hash: neither opened as a new or empty file nor cut where it ends'
export const DISTURBED = 'ok, no hash: files were changed by another way meanwhile, and it may be one of them'

/** Results of what went well, and has no hash. */
export const WITHOUT_HASH: ReadonlySet<string> = new Set([
  NOT_IN_ORDER,
  NO_HASH,
  NOT_TO_THE_END,
  NOT_NEW,
  DISTURBED,
])

/** How a file is opened. */
export interface Opening {
  path: string
  /** SFTP's pflags; undefined for a directory. */
  flags?: number
  /** The size among the attributes that the client has sent with it. */
  size?: number
}

export class SftpFile {
  readonly path: string
  readonly isDirectory: boolean
  /** What is done to the file by this handle. */
  readonly changes: Changes
  readonly #flags: number
  readonly #budget: ReorderBudget
  readonly #frames: ChannelFrames
  readonly #othersChanged: () => boolean
  #up: OrderedHash | undefined
  #down: OrderedHash | undefined
  /** Where the file ends, as the target said: by its size, or by an end of file. */
  #size: number | undefined
  #failure: string | undefined
  #changedOtherwise = false
  /** The size that the client gave the file: less content than that is not all of it. */
  #extended: number
  /** The size that the target says it has cut or extended the file to. */
  #cut: number | undefined
  /** Reads and writes that wait for their answer. */
  #pending = 0
  #isClosing = false
  #closed: string | undefined
  #disturbed: boolean | undefined

  /** To be made when the file is asked for: from then on it is looked whether something else is done. */
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

  /** The target has opened it. */
  opened(): void {
    // A file that is made or emptied changes without any data.
    if ((this.#flags & FXF.write) !== 0 && (this.#flags & (FXF.creat | FXF.trunc)) !== 0) this.#uploaded()
  }

  /** A WRITE is passed on. Returns where its data goes. */
  upload(): OrderedHash {
    this.#pending++
    const content = this.#uploaded()
    // A target that goes by the order has none of it.
    if (this.#isClosing) content.break()
    return content
  }

  /** A READ is passed on. */
  download(): void {
    this.#pending++
    this.#downloaded()
  }

  /** Data has come as the answer to a READ. Returns where it goes. */
  downloaded(): OrderedHash {
    return this.#downloaded()
  }

  /** A READ or a WRITE has its whole answer. */
  answered(): void {
    this.#pending--
    this.#settle()
  }

  /** CLOSE is passed on. What is done by another way from now on is done to the file as it is. */
  closing(): void {
    this.#isClosing = true
    this.#settle()
  }

  /** The target has closed it, with that result. */
  closed(result: string): void {
    this.#closed = result
  }

  /** The result, when the file is closed and nothing of it is to come; undefined before. */
  get outcome(): string | undefined {
    return this.#pending === 0 ? this.#closed : undefined
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
    else this.#extended = Math.max(this.#extended, size)
  }

  /** The target has done so. */
  cutAt(size: number): void {
    this.#cut = size
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

  #settle(): void {
    if (this.#isClosing && this.#pending === 0) this.#disturbed ??= this.#othersChanged()
  }

  #uploaded(): OrderedHash {
    if (this.#up === undefined) {
      this.#up = new OrderedHash(this.#budget, this.#frames.newHash())
      // The target ignores offsets when it appends: what passes goes behind what is there.
      if (this.#changedOtherwise || this.#has(FXF.append)) this.#up.break()
    }
    return this.#up
  }

  #downloaded(): OrderedHash {
    this.#down ??= new OrderedHash(this.#budget, this.#frames.newHash())
    return this.#down
  }

  /** All that the file holds was written by this handle: it was empty, or is cut where that ends, as scp does it. */
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

  /** Why the hash of what passed is not the file's. */
  #flawOf(direction: Direction, content: OrderedHash): string | undefined {
    const { contiguous } = content
    if (direction === 'up') {
      if (contiguous === undefined) return NOT_IN_ORDER
      if (!this.#isWhole) return NOT_NEW
      if (contiguous < this.#extended) return NOT_TO_THE_END
    } else {
      if (contiguous === undefined) return NOT_IN_ORDER
      // What the target has told of its end and what came of it have to agree.
      if (contiguous !== this.#size) return NOT_TO_THE_END
      if (this.#up !== undefined) return DISTURBED
    }
    return (this.#disturbed ?? this.#othersChanged()) ? DISTURBED : undefined
  }
}
