/**
 * What the rules for files say of each SFTP request. Questions (stat, realpath, readlink …) move nothing and are not
 * judged. A change of a name is judged where it takes something away and where it puts it, so that no file gets a
 * name under which other rules hold.
 */
import { Buffer } from 'node:buffer'
import type { FileJudge } from '../../../src/model/file-judge.ts'
import type { FileDirection } from '../../../src/model/file-rules.ts'
import { textOf } from '../../../src/model/path-pattern.ts'
import { FX_FAILURE, FX_OK, FX_PERMISSION_DENIED, FXF, FXP, type SftpRequest } from '../codec/sftp.ts'
import { reads, writes } from './permits.ts'
import { type Asking, folderOf, type NoPlace, type Place, Places } from './places.ts'

/** What the client is told instead of the target's answer; `denial` is for the audit. */
export interface Refusal {
  code: number
  message: string
  denial?: { path: string; direction?: FileDirection; reason: string }
}

/** An open file: the rules go on with it while its content moves. */
export interface OpenFile {
  /** For people. */
  path: string
  place: Place
  /** The target ignores offsets. */
  appends: boolean
  /** The largest size it is known to have, or to have got. */
  size: number
  /** Nothing more of its content passes in that direction. */
  refused: { up: boolean; down: boolean }
}

/** `file`: what the request opens when it is allowed. */
export type Verdict = { refusal: Refusal } | { refusal?: never; file?: OpenFile }

/** Known at once, or when the target has answered. */
export type Outcome = Verdict | Asking<Verdict>

const ALLOWED: Verdict = {}
const SLASH = Buffer.from('/')

/** Questions, by type and by extension. */
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

  constructor(judge: FileJudge) {
    this.#judge = judge
  }

  /** Any request but INIT and WRITE. `paths`: its exact bytes, `files`: of its handles, in the order of the wire. */
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

  /** A WRITE that ends at `end`, or adds as many bytes. */
  write(file: OpenFile, offset: number, length: number): Refusal | undefined {
    if (!file.refused.up) {
      const size = file.appends ? file.size + length : Math.max(file.size, offset + length)
      const refusal = this.#refusal('up', file.place, file.path, size)
      if (refusal === undefined) {
        file.size = size
        return undefined
      }
      file.refused.up = true
      return refusal
    }
    return { code: FX_PERMISSION_DENIED, message: 'the file is refused' }
  }

  /** Content of the target that ends at `end`. */
  read(file: OpenFile, end: number): Refusal | undefined {
    if (!file.refused.down) {
      file.size = Math.max(file.size, end)
      const refusal = this.#refusal('down', file.place, file.path, file.size)
      if (refusal === undefined) return undefined
      file.refused.down = true
      return refusal
    }
    return { code: FX_PERMISSION_DENIED, message: 'the file is refused' }
  }

  /** Whether `write` and `read` have to be asked. */
  get asksSize(): boolean {
    return this.#judge.asksSize
  }

  *#open(request: SftpRequest, path: Uint8Array): Asking<Verdict> {
    const flags = request.flags ?? 0
    const shown = request.path ?? ''
    const place = yield* this.#places.find(path, true)
    if ('message' in place) return unfound(place, shown)
    const size = this.#judge.asksSize && (flags & FXF.trunc) === 0 ? yield* sizeOf(path) : 0
    const refusal =
      (reads(flags) ? this.#refusal('down', place, shown, size) : undefined) ??
      (writes(flags) ? this.#refusal('up', place, shown, size) : undefined)
    if (refusal !== undefined) return { refusal }
    const appends = (flags & FXF.append) !== 0
    return { file: { path: shown, place, appends, size, refused: { up: false, down: false } } }
  }

  *#folder(request: SftpRequest, path: Uint8Array): Asking<Verdict> {
    const shown = request.path ?? ''
    const place = yield* this.#places.find(path, true)
    if ('message' in place) return unfound(place, shown)
    const refusal = this.#refusal('down', place, shown)
    if (refusal !== undefined) return { refusal }
    return { file: { path: shown, place, appends: false, size: 0, refused: { up: false, down: false } } }
  }

  *#change(request: SftpRequest, path: Uint8Array, follows: boolean): Asking<Verdict> {
    const place = yield* this.#places.find(path, follows)
    if ('message' in place) return unfound(place, request.path)
    return verdict(this.#refusal('up', place, request.path ?? '', request.size))
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
        this.#refusalBehind(source, followed, old),
    )
  }

  /** A link that leads to a forbidden place, or above one, stays where it is. */
  #refusalBehind(link: Place, followed: Place | NoPlace, path: string): Refusal | undefined {
    if ('message' in followed || textOf(followed.real) === textOf(link.real)) return undefined
    return (
      this.#bothWays(followed, path) ??
      this.#refusalBelow('up', followed, path) ??
      this.#refusalBelow('down', followed, path)
    )
  }

  /** Under its new name a file can be read and be changed. */
  *#link(request: SftpRequest, from: Uint8Array, to: Uint8Array): Asking<Verdict> {
    const [old, fresh] = [request.path ?? '', request.target ?? '']
    const followed = yield* this.#places.find(from, true)
    if ('message' in followed) return unfound(followed, old)
    const source = yield* this.#places.find(from, false)
    if ('message' in source) return unfound(source, old)
    const destination = yield* this.#places.find(to, false)
    if ('message' in destination) return unfound(destination, fresh)
    const size = yield* sizeOf(from)
    return verdict(
      this.#bothWays(followed, old, size) ??
        this.#bothWays(source, old, size) ??
        this.#refusal('up', destination, fresh, size),
    )
  }

  /** OpenSSH's order: what the link points to comes first. A relative one begins at the link's folder. */
  *#symlink(request: SftpRequest, to: Uint8Array, link: Uint8Array): Asking<Verdict> {
    const [aim, fresh] = [request.path ?? '', request.target ?? '']
    const destination = yield* this.#places.find(link, false)
    if ('message' in destination) return unfound(destination, fresh)
    const whole = to[0] === SLASH[0] ? to : Buffer.concat([folderOf(link), SLASH, to])
    const source = yield* this.#places.find(whole, true)
    if ('message' in source) return unfound(source, aim)
    return verdict(this.#refusal('up', destination, fresh) ?? this.#bothWays(source, aim))
  }

  #resize({ size }: SftpRequest, file: OpenFile): Verdict {
    const refusal = this.#refusal('up', file.place, file.path, size)
    if (refusal === undefined && size !== undefined) file.size = Math.max(file.size, size)
    return verdict(refusal)
  }

  /** copy-data: a length of 0 is all there is. */
  #copy({ length = 0 }: SftpRequest, from: OpenFile, to: OpenFile): Verdict {
    const added = length === 0 ? Number.MAX_SAFE_INTEGER : length
    if (!this.#judge.asksSize) return ALLOWED
    return verdict(this.#refusal('down', from.place, from.path, from.size) ?? this.write(to, to.size, added))
  }

  #unknown(what: string): Verdict {
    const reason = `the rules for files cannot be evaluated for ${what}`
    return { refusal: { code: FX_PERMISSION_DENIED, message: reason, denial: { path: what, reason } } }
  }

  #bothWays(place: Place, path: string, size = 0): Refusal | undefined {
    return this.#refusal('down', place, path, size) ?? this.#refusal('up', place, path, size)
  }

  #refusal(direction: FileDirection, place: Place, path: string, size = 0): Refusal | undefined {
    const rule =
      this.#judge.forbids(direction, place.real, size) ?? this.#judge.forbids(direction, place.named, size)
    return rule && refusalBy(rule.text, direction, path)
  }

  /** What lies below a folder goes with it. Where it lies makes no difference when all rules are for every path. */
  #refusalBelow(direction: FileDirection, place: Place, path: string): Refusal | undefined {
    if (!this.#judge.asksPath) return undefined
    const rule =
      this.#judge.forbidsBelow(direction, place.real) ?? this.#judge.forbidsBelow(direction, place.named)
    return rule && refusalBy(rule.text, direction, path)
  }
}

function refusalBy(rule: string, direction: FileDirection, path: string): Refusal {
  const reason = `the rule for files "${rule}" does not allow it`
  return { code: FX_PERMISSION_DENIED, message: reason, denial: { path, direction, reason } }
}

function verdict(refusal: Refusal | undefined): Verdict {
  return refusal === undefined ? ALLOWED : { refusal }
}

/** The target's own failure is passed on as such; a place that is not to be found out is refused. */
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

function* sizeOf(path: Uint8Array): Asking<number> {
  const answer = yield { type: FXP.stat, path }
  return answer.kind === 'attributes' ? (answer.size ?? 0) : 0
}
