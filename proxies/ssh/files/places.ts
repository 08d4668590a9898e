/**
 * Resolves a client's path on the target. The bastion sends the target a request, since only the target's
 * reply counts (`..`, links, the folder that relative paths begin at). Rules are applied both to the client's
 * name for the path and to the real path that the target returns.
 *
 * One race remains: another user can change a link on the target between the reply and the request.
 */
import { Buffer } from 'node:buffer'
import { type Path, pathOf } from '../../../src/model/path-pattern.ts'
import { displayText } from '../../bytes/text.ts'
import { FXP } from '../codec/sftp.ts'
import type { Answer } from '../codec/sftp-answers.ts'

/** A request of the bastion itself, which the target answers. */
export interface Question {
  type: typeof FXP.realpath | typeof FXP.lstat | typeof FXP.stat
  path: Uint8Array
}
export type Asking<T> = Generator<Question, T, Answer>

export interface Place {
  /** The path as the client named it. */
  named: Path
  /** The path as the target resolves it. */
  real: Path
}

/** The reply to the client instead of a place: the target's error, or that the path cannot be resolved. */
export interface NoPlace {
  code?: number
  message: string
}

/** PATH_MAX of Linux. Longer paths are refused. */
const PATH_LIMIT = 4096
const SLASH = 0x2f
const HERE = Buffer.from('.')

export class Places {
  #start: Path | undefined;

  /** `follows`: a link at the end of the path is resolved. */
  *find(path: Uint8Array, follows: boolean): Asking<Place | NoPlace> {
    if (path.length > PATH_LIMIT || path.includes(0)) {
      return { message: `a path of at most ${PATH_LIMIT} bytes, none of them 0, was expected` }
    }
    const start: { path: Path } | NoPlace = path[0] === SLASH ? { path: [] } : yield* this.#startFolder()
    if ('message' in start) return start
    const named = pathOf(displayText(path), start.path)
    const real = yield* follows ? this.#followed(path) : this.#unfollowed(path)
    return 'message' in real ? real : { named, real: real.path }
  }

  *#startFolder(): Asking<{ path: Path } | NoPlace> {
    if (this.#start !== undefined) return { path: this.#start }
    const start = yield* realPath(HERE)
    if ('path' in start) this.#start = start.path
    return start
  }

  *#followed(path: Uint8Array): Asking<{ path: Path } | NoPlace> {
    const real = yield* realPath(path)
    if (!('message' in real)) return real
    // If a target does not resolve a path that does not exist yet, resolve its folder.
    const parent = yield* this.#unfollowed(path)
    if ('message' in parent) return real
    const there = yield { type: FXP.lstat, path }
    if (there.kind === 'status') return parent
    return { message: 'the target does not say where the path leads' }
  }

  /** Returns the folder's real path, with the last name unchanged. */
  *#unfollowed(path: Uint8Array): Asking<{ path: Path } | NoPlace> {
    const cut = path.lastIndexOf(SLASH)
    const name = displayText(path.subarray(cut + 1))
    if (name === '' || name === '.' || name === '..') return yield* realPath(path)
    const folder = yield* realPath(folderOf(path))
    if ('message' in folder) return folder
    return { path: [...folder.path, name.normalize('NFC')] }
  }
}

/** Returns the folder part of a path. */
export function folderOf(path: Uint8Array): Uint8Array {
  const cut = path.lastIndexOf(SLASH)
  if (cut === -1) return HERE
  return path.subarray(0, Math.max(cut, 1))
}

function* realPath(path: Uint8Array): Asking<{ path: Path } | NoPlace> {
  const answer = yield { type: FXP.realpath, path }
  if (answer.kind === 'status') return { code: answer.code, message: answer.message }
  const text = answer.kind === 'name' ? displayText(answer.path) : ''
  if (!text.startsWith('/')) return { message: 'the target does not tell the path that it was asked for' }
  return { path: pathOf(text) }
}
