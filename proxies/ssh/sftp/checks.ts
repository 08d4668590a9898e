/**
 * Applies the rules for files to each SFTP request. Queries (stat, realpath, readlink …) transfer nothing and
 * are not checked. A change of a name is checked at its source and its destination, so that no file gets a
 * name under which other rules apply.
 */
import { Buffer } from 'node:buffer'
import type { FileJudge } from '../../../src/model/file-judge.ts'
import type { FileDirection } from '../../../src/model/file-rule.ts'
import { textOf } from '../../../src/model/path-pattern.ts'
import {
  FX_FAILURE,
  FX_NO_SUCH_FILE,
  FX_OK,
  FX_PERMISSION_DENIED,
  FXF,
  FXP,
  type SftpRequest,
} from '../codec/sftp.ts'
import type { OpenFile, OpenSizes } from '../files/open-sizes.ts'
import { type Asking, folderOf, type NoPlace, type Place, Places } from '../files/places.ts'
import { reads, writes } from './permits.ts'

/** The reply to the client in place of the target's; `denial` is for the audit log. */
export interface Refusal {
  code: number
  message: string
  denial?: { path: string; direction?: FileDirection; reason: string }
}

/** `file`: the file that an allowed request opens. */
export type Verdict = { refusal: Refusal } | { refusal?: never; file?: OpenFile }

/** Known at once, or after replies of the target. */
export type Outcome = Verdict | Asking<Verdict>

const ALLOWED: Verdict = {}
const REFUSED_BEFORE: Refusal = { code: FX_PERMISSION_DENIED, message: 'the file is refused' }
const SLASH = Buffer.from('/')
const DIRECTIONS: readonly FileDirection[] = ['up', 'down']

/** Queries, by type and by extension. */
const HARMLESS: readonly number[] = [
  FXP.close,
  FXP.read,
  FXP.readdir,
  FXP.lstat,
  FXP.fstat,
  FXP.stat,
  FXP.realpath,
  FXP.readlink,
]
const HARMLESS_EXTENSIONS: readonly string[] = [
  'limits@openssh.com',
  'expand-path@openssh.com',
  'home-directory',
  'users-groups-by-id@openssh.com',
  'statvfs@openssh.com',
  'fstatvfs@openssh.com',
  'fsync@openssh.com',
]
const JUDGED_EXTENSIONS: readonly string[] = [
  'posix-rename@openssh.com',
  'hardlink@openssh.com',
  'lsetstat@openssh.com',
  'copy-data',
]

/** Whether the rules can be evaluated for an extension. */
export function isJudged(extension: string): boolean {
  return HARMLESS_EXTENSIONS.includes(extension) || JUDGED_EXTENSIONS.includes(extension)
}

export class Checks {
  readonly #judge: FileJudge
  readonly #places = new Places()
  /** The session's file sizes. */
  readonly #sizes: OpenSizes
  /** The open files of this channel. */
  readonly #own = new Set<OpenFile>()

  constructor(judge: FileJudge, sizes: OpenSizes) {
    this.#judge = judge
    this.#sizes = sizes
  }

  /** Call when the file is closed, or was not opened. */
  close(file: OpenFile): void {
    this.#own.delete(file)
    this.#sizes.end(file)
  }

  /** Call at the end of the channel. */
  end(): void {
    for (const file of this.#own) this.#sizes.end(file)
  }

  /**
   * Checks any request except INIT and WRITE. `paths`: its exact bytes; `files`: those of its handles; both
   * in the order of the wire.
   */
  of(request: SftpRequest, paths: readonly Uint8Array[], files: readonly OpenFile[]): Outcome {
    const { type, extension } = request
    if (HARMLESS.includes(type) || (extension !== undefined && HARMLESS_EXTENSIONS.includes(extension)))
      return ALLOWED
    const [first, second] = paths
    switch (extension ?? type) {
      case FXP.open:
        return this.#open(request, first!)
      case FXP.opendir:
        return this.#folder(request, first!)
      case FXP.setstat:
        return this.#change(request, first!, true)
      case FXP.mkdir:
      case FXP.rmdir:
      case FXP.remove:
      case 'lsetstat@openssh.com':
        return this.#change(request, first!, false)
      case FXP.rename:
      case 'posix-rename@openssh.com':
        return this.#rename(request, first!, second!)
      case 'hardlink@openssh.com':
        return this.#link(request, first!, second!)
      case FXP.symlink:
        return this.#symlink(request, first!, second!)
      case FXP.fsetstat:
        return this.#resize(request, files[0]!)
      case 'copy-data':
        return this.#copy(request, files[0]!, files[1]!)
    }
    return this.#unknown(extension ?? `request ${type}`)
  }

  /** Checks a WRITE of `length` bytes at `offset`, or at the end of a file opened to append. */
  write(file: OpenFile, offset: number, length: number): Refusal | undefined {
    if (!file.refused.up) {
      const size = file.appends ? file.size + file.added + length : Math.max(file.size, offset + length)
      const refusal = this.#refusal('up', file.place, file.path, size)
      if (refusal === undefined) {
        if (file.appends) this.#sizes.appended(length)
        else {
          file.size = size
          this.#sizes.reached(size)
        }
        return undefined
      }
      file.refused.up = true
      return refusal
    }
    return REFUSED_BEFORE
  }

  /** Checks content of the target that ends at `end`. */
  read(file: OpenFile, end: number): Refusal | undefined {
    if (!file.refused.down) {
      file.size = Math.max(file.size, end)
      const refusal = this.#refusal('down', file.place, file.path, file.size)
      if (refusal === undefined) return undefined
      file.refused.down = true
      return refusal
    }
    return REFUSED_BEFORE
  }

  /** Whether `write` and `read` must be called. */
  get asksSize(): boolean {
    return this.#judge.asksSize
  }

  *#open(request: SftpRequest, path: Uint8Array): Asking<Verdict> {
    const flags = request.flags ?? 0
    const shown = request.path ?? ''
    const place = yield* this.#places.find(path, true)
    if ('message' in place) return unfound(place, shown)
    const file = openFile(shown, place, flags)
    this.#own.add(file)
    this.#sizes.begin(file)
    const refusal = yield* this.#sizeOfOpened(request, path, file)
    if (refusal === undefined) return { file }
    this.close(file)
    return { refusal }
  }

  /** Checks the size that a file has when it is opened, and the size that opening gives it. */
  *#sizeOfOpened(request: SftpRequest, path: Uint8Array, file: OpenFile): Asking<Refusal | undefined> {
    const { flags = 0, path: shown = '' } = request
    const there = this.#judge.asksSize && (flags & FXF.trunc) === 0 ? yield* this.#sizeOf(path, shown) : 0
    if (typeof there !== 'number') return there
    file.size = Math.max(file.size, there, request.size ?? 0)
    return (
      (reads(flags) ? this.#refusal('down', file.place, shown, there) : undefined) ??
      (writes(flags) ? this.#refusal('up', file.place, shown, file.size + file.added) : undefined)
    )
  }

  *#folder(request: SftpRequest, path: Uint8Array): Asking<Verdict> {
    const shown = request.path ?? ''
    const place = yield* this.#places.find(path, true)
    if ('message' in place) return unfound(place, shown)
    const refusal = this.#refusal('down', place, shown)
    if (refusal !== undefined) return { refusal }
    return { file: openFile(shown, place, FXF.read) }
  }

  *#change(request: SftpRequest, path: Uint8Array, follows: boolean): Asking<Verdict> {
    const { path: shown = '', size } = request
    const place = yield* this.#places.find(path, follows)
    if ('message' in place) return unfound(place, shown)
    let refusal = this.#refusal('up', place, shown, size)
    if (refusal === undefined && size !== undefined && !follows) {
      // A link has no size: a target that sets one sets the file's.
      const followed = yield* this.#places.find(path, true)
      if ('message' in followed) return unfound(followed, shown)
      refusal = this.#refusal('up', followed, shown, size)
    }
    if (refusal === undefined && size !== undefined) this.#sizes.reached(size)
    return verdict(refusal)
  }

  *#rename(request: SftpRequest, from: Uint8Array, to: Uint8Array): Asking<Verdict> {
    const source = yield* this.#places.find(from, false)
    if ('message' in source) return unfound(source, request.path)
    const destination = yield* this.#places.find(to, false)
    if ('message' in destination) return unfound(destination, request.target)
    const [old, fresh] = [request.path ?? '', request.target ?? '']
    const there = yield { type: FXP.lstat, path: from }
    if (there.kind === 'status') return unfound(there, old)
    const { size = 0, isFolder } = there.kind === 'attributes' ? there : {}
    if (this.#judge.asksSize && there.kind === 'attributes' && there.size === undefined)
      return { refusal: unknownSize(old) }
    const followed = yield* this.#places.find(from, true)
    return verdict(
      this.#refusal('up', source, old) ??
        this.#refusal('down', source, old, size) ??
        this.#refusal('up', destination, fresh, size) ??
        (isFolder === false
          ? undefined
          : (this.#refusalBelow('up', source, old) ??
            this.#refusalBelow('down', source, old) ??
            this.#refusalBelow('up', destination, fresh))) ??
        this.#refusalBehind(source, followed, old) ??
        this.#refusalOfGrowth(destination, fresh),
    )
  }

  /** Keeps links in their place that lead to a forbidden path, or to a folder above one. */
  #refusalBehind(link: Place, followed: Place | NoPlace, path: string): Refusal | undefined {
    if ('message' in followed || textOf(followed.real) === textOf(link.real)) return undefined
    return (
      this.#bothWays(followed, path) ??
      this.#refusalBelow('up', followed, path) ??
      this.#refusalBelow('down', followed, path)
    )
  }

  /** An open file stays under the rules of the name by which it was opened, even after a rename. */
  #refusalOfGrowth(destination: Place, path: string): Refusal | undefined {
    if (!this.#judge.asksSize) return undefined
    const isLess = (file: OpenFile) =>
      this.#judge.sizes.some(
        (size) =>
          this.#refusal('up', file.place, '', size) === undefined &&
          this.#refusal('up', destination, '', size) !== undefined,
      )
    for (const file of this.#sizes.writing) {
      if (isLess(file))
        return refusalFor(
          path,
          'a file is open that may become larger than the rules allow there: close it first',
          'up',
        )
    }
    return undefined
  }

  /** A file with two names has the same size under both. */
  #refusalOfLimits(source: Place, destination: Place, path: string): Refusal | undefined {
    if (!this.#judge.asksSize) return undefined
    const isAllowed = (direction: FileDirection, place: Place, size: number) =>
      this.#refusal(direction, place, '', size) === undefined
    const isAlike = DIRECTIONS.every((direction) =>
      this.#judge.sizes.every(
        (size) => isAllowed(direction, source, size) === isAllowed(direction, destination, size),
      ),
    )
    return isAlike ? undefined : refusalFor(path, 'the rules limit sizes otherwise under the other name')
  }

  /** A linked file can be read and changed under its new name. */
  *#link(request: SftpRequest, from: Uint8Array, to: Uint8Array): Asking<Verdict> {
    const [old, fresh] = [request.path ?? '', request.target ?? '']
    const followed = yield* this.#places.find(from, true)
    if ('message' in followed) return unfound(followed, old)
    const source = yield* this.#places.find(from, false)
    if ('message' in source) return unfound(source, old)
    const destination = yield* this.#places.find(to, false)
    if ('message' in destination) return unfound(destination, fresh)
    const size = this.#judge.asksSize ? yield* this.#sizeOf(from, old) : 0
    if (typeof size !== 'number') return { refusal: size }
    return verdict(
      this.#bothWays(followed, old, size) ??
        this.#bothWays(source, old, size) ??
        this.#refusal('up', destination, fresh, size) ??
        this.#refusalOfLimits(followed, destination, fresh),
    )
  }

  /** OpenSSH's order: the link's destination comes first. A relative one begins at the link's folder. */
  *#symlink(request: SftpRequest, to: Uint8Array, link: Uint8Array): Asking<Verdict> {
    const [aim, fresh] = [request.path ?? '', request.target ?? '']
    const destination = yield* this.#places.find(link, false)
    if ('message' in destination) return unfound(destination, fresh)
    const whole = to[0] === SLASH[0] ? to : Buffer.concat([folderOf(link), SLASH, to])
    const source = yield* this.#places.find(whole, true)
    if ('message' in source) return unfound(source, aim)
    const there = yield { type: FXP.stat, path: whole }
    const isFile = there.kind === 'attributes' && there.isFolder === false
    return verdict(
      this.#refusal('up', destination, fresh) ??
        this.#bothWays(source, aim) ??
        (isFile
          ? undefined
          : (this.#refusalBelow('up', source, aim) ?? this.#refusalBelow('down', source, aim))),
    )
  }

  #resize({ size }: SftpRequest, file: OpenFile): Verdict {
    const refusal = this.#refusal('up', file.place, file.path, size)
    if (refusal === undefined) {
      if (size !== undefined) {
        file.size = Math.max(file.size, size)
        this.#sizes.reached(size)
      }
      return ALLOWED
    }
    // After a refusal, OpenSSH's client truncates the file at the end of its data: this is already logged.
    return { refusal: file.refused.up ? REFUSED_BEFORE : refusal }
  }

  /** copy-data: a length of 0 means all of the file. */
  #copy({ length = 0, targetOffset = 0 }: SftpRequest, from: OpenFile, to: OpenFile): Verdict {
    const added = length === 0 ? Number.MAX_SAFE_INTEGER : length
    if (!this.#judge.asksSize) return ALLOWED
    return verdict(
      this.#refusal('down', from.place, from.path, from.size) ?? this.write(to, targetOffset, added),
    )
  }

  #unknown(what: string): Verdict {
    const reason = `the rules for files cannot be evaluated for ${what}`
    return { refusal: { code: FX_PERMISSION_DENIED, message: reason, denial: { path: what, reason } } }
  }

  /** Returns the size of an existing file, or 0 if there is none. */
  *#sizeOf(path: Uint8Array, shown: string): Asking<number | Refusal> {
    const answer = yield { type: FXP.stat, path }
    if (answer.kind === 'attributes') return answer.size ?? unknownSize(shown)
    if (answer.kind !== 'status') return unknownSize(shown)
    if (answer.code === FX_NO_SUCH_FILE) return 0
    return answer.code === FX_OK ? unknownSize(shown) : { code: answer.code, message: answer.message }
  }

  #bothWays(place: Place, path: string, size = 0): Refusal | undefined {
    return this.#refusal('down', place, path, size) ?? this.#refusal('up', place, path, size)
  }

  #refusal(direction: FileDirection, place: Place, path: string, size = 0): Refusal | undefined {
    const rule =
      this.#judge.forbids(direction, place.real, size) ?? this.#judge.forbids(direction, place.named, size)
    return rule && refusalBy(rule.text, direction, path)
  }

  /** Moving a folder moves all files below it. The path does not matter if no rule names paths. */
  #refusalBelow(direction: FileDirection, place: Place, path: string): Refusal | undefined {
    if (!this.#judge.asksPath) return undefined
    const rule =
      this.#judge.forbidsBelow(direction, place.real) ?? this.#judge.forbidsBelow(direction, place.named)
    return rule && refusalBy(rule.text, direction, path)
  }
}

function refusalBy(rule: string, direction: FileDirection, path: string): Refusal {
  return refusalFor(path, `the rule for files "${rule}" does not allow it`, direction)
}

function unknownSize(path: string): Refusal {
  return refusalFor(path, 'the target does not say how large it is')
}

function refusalFor(path: string, reason: string, direction?: FileDirection): Refusal {
  const denial = { path, ...(direction !== undefined && { direction }), reason }
  return { code: FX_PERMISSION_DENIED, message: reason, denial }
}

function verdict(refusal: Refusal | undefined): Verdict {
  return refusal === undefined ? ALLOWED : { refusal }
}

/** Returns the target's own failure as it is; refuses a path that cannot be resolved. */
function unfound({ code, message }: NoPlace, path = ''): Verdict {
  if (code !== undefined && code !== FX_OK) return { refusal: { code, message } }
  return {
    refusal: {
      code: code === FX_OK ? FX_FAILURE : FX_PERMISSION_DENIED,
      message,
      denial: { path, reason: message },
    },
  }
}

function openFile(path: string, place: Place, flags: number): OpenFile {
  return {
    path,
    place,
    writes: writes(flags),
    appends: (flags & FXF.append) !== 0,
    size: 0,
    added: 0,
    growing: 0,
    refused: { up: false, down: false },
  }
}
