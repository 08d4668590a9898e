/**
 * Records an SFTP channel: one operation per transferred file (size, SHA-256, the target's reply) and one per
 * change of names and attributes on the target. Queries (stat, readdir, realpath …) are only counted. Data is
 * hashed as it arrives and never collected.
 *
 * A stream that cannot be parsed would hide its operations, so it is a violation (MalformedError): a version
 * other than 3, packets over their limits, replies to nothing, requests on a handle that the target has not
 * issued (a guessed handle would write an unseen file), more state than the limits below.
 */

import { type Exit, FRAME } from '../../../recordings/container/frames.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { latin1 } from '../../bytes/text.ts'
import { uint32At } from '../../bytes/uint32.ts'
import type { Quota } from '../../session/quota.ts'
import { Reader } from '../codec/reader.ts'
import {
  ATTR_SIZE,
  FX_EOF,
  FX_OK,
  FXF,
  FXP,
  HANDLE_LIMIT,
  parseRequest,
  parseWriteHead,
  replyHead,
  requestHead,
  type SftpRequest,
  statusText,
  VERSION,
} from '../codec/sftp.ts'
import { PacketSplitter } from '../codec/sftp-packets.ts'
import type { Changes } from '../files/changes.ts'
import type { ChannelFrames } from './frames.ts'
import { ReorderBudget } from './ordered-hash.ts'
import { QuotaStream } from './quota-stream.ts'
import type { ChannelRecorder, RecorderEvents } from './recorder.ts'
import { type DataTarget, DataVisitor } from './sftp-data.ts'
import { SftpFile } from './sftp-file.ts'
import { changesFiles, operationOf } from './sftp-operations.ts'

/** Reads and writes under way. paramiko requests a whole file at once, as far as windows allow. */
export const OUTSTANDING_LIMIT = 131_072
/** Other requests under way. */
export const OUTSTANDING_OTHERS_LIMIT = 4096
/** Open files and directories. */
export const OPEN_LIMIT = 1024
/** Paths whose size from a STAT is remembered until they are opened. */
const SIZES_LIMIT = 64

/** A request that waits for its reply. */
interface Waiting {
  request: SftpRequest
  /** The file of the handle, or the one to be opened. */
  file?: SftpFile
  /** Counts the request as a change until its reply. */
  changes?: Changes
  /** For a STAT: returns whether anything has changed since it was sent. */
  isStale?: () => boolean
}

/** A size from a STAT, and whether anything has changed since it was sent. */
interface ToldSize {
  size: number
  isStale: () => boolean
}

const CUT = 'the channel ended before the file was closed'
const UNANSWERED = 'the channel ended before all of it was answered'

export class SftpRecorder implements ChannelRecorder {
  readonly #frames: ChannelFrames
  readonly #events: RecorderEvents
  readonly #errors: QuotaStream
  readonly #budget = new ReorderBudget()
  readonly #requests: PacketSplitter
  readonly #replies: PacketSplitter
  readonly #waiting = new Map<number, Waiting>()
  readonly #open = new Map<string, SftpFile>()
  /** Closed files whose reads or writes still wait for a reply. */
  readonly #closing = new Set<SftpFile>()
  readonly #sizes = new Map<string, ToldSize>()
  readonly #changes: Changes
  #waitingOthers = 0
  #opening = 0
  #begun = false
  #agreed = false
  #queries = 0

  constructor(frames: ChannelFrames, events: RecorderEvents, quota: Quota, changes: Changes) {
    this.#frames = frames
    this.#changes = changes
    this.#events = events
    this.#errors = new QuotaStream(frames, events, quota, 'out')
    this.#requests = new PacketSplitter(new DataVisitor(requestHead, (...packet) => this.#request(...packet)))
    this.#replies = new PacketSplitter(new DataVisitor(replyHead, (...packet) => this.#reply(...packet)))
  }

  fromClient(data: Uint8Array): void {
    this.#requests.feed(data)
  }

  fromTarget(data: Uint8Array, stderr: boolean): void {
    if (stderr) this.#errors.write(FRAME.errorOutput, data)
    else this.#replies.feed(data)
  }

  resize(columns: number, rows: number): void {
    this.#frames.resize(columns, rows)
  }

  exit(exit: Exit): void {
    this.#frames.exit(exit)
  }

  close(): void {
    for (const { request, changes } of this.#waiting.values()) {
      changes?.end()
      this.#answered(request, 'no answer')
    }
    for (const file of this.#open.values()) this.#finish(file, CUT)
    for (const file of this.#closing) this.#finish(file, UNANSWERED)
    if (this.#queries > 0) {
      this.#frames.file({ operation: 'stat', path: '', result: `${this.#queries} queries` })
    }
    this.#errors.close()
    this.#frames.close()
  }

  /** Handles a request. Returns the receiver of the data that follows. */
  #request(type: number, head: Uint8Array, rest: number): DataTarget | undefined {
    if (type === FXP.init) {
      if (this.#begun) throw new MalformedError('sftp: one init was expected, found another')
      this.#begun = true
      return undefined
    }
    if (!this.#begun) throw new MalformedError(`sftp: init was expected first, found type ${type}`)
    if (type === FXP.write) return this.#write(head, rest)
    const request = parseRequest(type, head)
    const file = request.handle === undefined ? this.#opens(request) : this.#file(request.handle)
    let changed = file
    if (request.targetHandle !== undefined) {
      changed = this.#file(request.targetHandle)
      changed.changedOtherwise()
      request.target = changed.path
    }
    if (type === FXP.read) file!.download()
    if (type === FXP.close) file!.closing()
    if (type === FXP.fsetstat && request.size !== undefined) file!.resized(request.size)
    this.#wait(request, file, changesFiles(request) ? (changed?.changes ?? this.#changes) : undefined)
    return undefined
  }

  #write(head: Uint8Array, rest: number): DataTarget {
    const request = { type: FXP.write, ...parseWriteHead(head) }
    if (request.length !== rest) {
      throw new MalformedError(`sftp write: ${rest} bytes of data were expected, found ${request.length}`)
    }
    const file = this.#file(request.handle)
    this.#wait(request, file, file.changes)
    return { content: file.upload(), offset: request.offset, rest }
  }

  /** Returns the file or directory that a request opens, or undefined if it opens none. */
  #opens({ type, path = '', flags, size }: SftpRequest): SftpFile | undefined {
    if (type !== FXP.open && type !== FXP.opendir) return undefined
    this.#opening++
    if (OPEN_LIMIT < this.#opening + this.#open.size + this.#closing.size) {
      throw new MalformedError(`sftp: at most ${OPEN_LIMIT} open files were expected, found more`)
    }
    const opening = { path, ...(flags !== undefined && { flags }), ...(size !== undefined && { size }) }
    const file = new SftpFile(opening, this.#budget, this.#frames, this.#changes)
    const told = this.#sizes.get(path)
    if (told !== undefined && !told.isStale()) file.endsAt(told.size)
    return file
  }

  /** `changes`: counts the request as a change. */
  #wait(request: SftpRequest, file: SftpFile | undefined, changes: Changes | undefined): void {
    if (this.#waiting.has(request.id)) {
      throw new MalformedError(
        `sftp: an unused request id was expected, found ${request.id}, which waits for its answer`,
      )
    }
    if (!isTransfer(request.type)) this.#waitingOthers++
    if (OUTSTANDING_LIMIT <= this.#waiting.size || OUTSTANDING_OTHERS_LIMIT < this.#waitingOthers) {
      throw new MalformedError(
        `sftp: at most ${OUTSTANDING_LIMIT} waiting requests were expected, found more`,
      )
    }
    changes?.begin()
    this.#waiting.set(request.id, {
      request,
      ...(file !== undefined && { file }),
      ...(changes !== undefined && { changes }),
      ...(request.type === FXP.stat && { isStale: this.#changes.watch() }),
    })
  }

  #file(handle: string): SftpFile {
    const file = this.#open.get(handle)
    if (file === undefined)
      throw new MalformedError('sftp: a handle of the target was expected, found another')
    return file
  }

  /** Handles a reply. Returns the receiver of the data that follows. */
  #reply(type: number, head: Uint8Array, rest: number): DataTarget | undefined {
    if (type === FXP.version) {
      this.#version(uint32At(head, 0))
      return undefined
    }
    const id = uint32At(head, 0)
    const waiting = this.#waiting.get(id)
    if (waiting === undefined)
      throw new MalformedError(`sftp: an answer was expected, found one to ${id}, which nobody asked`)
    this.#waiting.delete(id)
    const { request, file, changes } = waiting
    changes?.end()
    if (!isTransfer(request.type)) this.#waitingOthers--
    if (request.type === FXP.open || request.type === FXP.opendir) this.#opening--
    if (!answers(type, request.type)) {
      throw new MalformedError(`sftp: an answer to type ${request.type} was expected, found type ${type}`)
    }
    switch (type) {
      case FXP.status:
        this.#status(request, file, uint32At(head, 4))
        if (isTransfer(request.type)) this.#transferred(file!)
        return undefined
      case FXP.handle:
        this.#handle(request, file!, head)
        return undefined
      case FXP.data:
        return this.#data(request, file!, uint32At(head, 4), rest)
      case FXP.attrs:
        this.#attributes(waiting, head)
        return undefined
      default:
        this.#answered(request, 'ok', file)
        return undefined
    }
  }

  #version(version: number): void {
    if (!this.#begun || this.#agreed) throw new MalformedError('sftp: no version was expected, found one')
    if (VERSION < version) throw new MalformedError(`sftp: version ${VERSION} was expected, found ${version}`)
    this.#agreed = true
  }

  #status(request: SftpRequest, file: SftpFile | undefined, code: number): void {
    const result = statusText(code)
    if (request.type === FXP.read) {
      if (code === FX_OK)
        throw new MalformedError('sftp: data or a failure was expected as answer to a read, found ok')
      if (code === FX_EOF) file?.endsAt(request.offset!)
      else file?.failed(result)
    } else if (request.type === FXP.write) {
      if (code !== FX_OK) file?.failed(result)
    } else if (request.type === FXP.close) {
      this.#close(request.handle!, file!, result)
    } else {
      if (request.type === FXP.fsetstat && code === FX_OK && request.size !== undefined)
        file?.cutAt(request.size)
      this.#answered(request, result, file)
      if (code !== FX_OK) this.#refused(request, result, file)
    }
  }

  #close(handle: string, file: SftpFile, result: string): void {
    if (this.#open.get(handle) !== file) return
    this.#open.delete(handle)
    file.closed(result)
    this.#closing.add(file)
    this.#finishDone(file)
  }

  /** Handles a reply to a READ or WRITE. A reply after the file's close still counts. */
  #transferred(file: SftpFile): void {
    file.answered()
    this.#finishDone(file)
  }

  #finishDone(file: SftpFile): void {
    const result = file.outcome
    if (result === undefined) return
    this.#closing.delete(file)
    this.#finish(file, result)
  }

  #handle(request: SftpRequest, file: SftpFile, body: Uint8Array): void {
    const reader = new Reader(body, 'sftp handle', 4)
    const handle = latin1(reader.string(HANDLE_LIMIT))
    if (this.#open.has(handle))
      throw new MalformedError('sftp: a new handle was expected, found one that is open')
    file.opened()
    this.#open.set(handle, file)
    if (file.isDirectory) this.#answered(request, 'ok')
  }

  #data(request: SftpRequest, file: SftpFile, length: number, rest: number): DataTarget {
    if (request.type !== FXP.read || file === undefined || length !== rest || request.length! < length) {
      throw new MalformedError(
        `sftp: ${length} bytes of data were not expected as answer to type ${request.type}`,
      )
    }
    const content = file.downloaded()
    if (rest === 0) this.#transferred(file)
    return { content, offset: request.offset!, rest, done: () => this.#transferred(file) }
  }

  /** uint32 id, uint32 flags, uint64 size if its flag is set. */
  #attributes({ request, file, isStale }: Waiting, head: Uint8Array): void {
    this.#queries++
    const reader = new Reader(head, 'sftp attrs', 4)
    if ((reader.uint32() & ATTR_SIZE) === 0) return
    const size = reader.size()
    if (file !== undefined) file.endsAt(size)
    else if (request.type === FXP.stat) {
      const path = request.path!
      this.#sizes.delete(path)
      if (isStale !== undefined) this.#sizes.set(path, { size, isStale })
      if (SIZES_LIMIT < this.#sizes.size) this.#sizes.delete(this.#sizes.keys().next().value!)
    }
  }

  /** Reports a request that the target has refused, unless it only asks. */
  #refused(request: SftpRequest, reason: string, file: SftpFile | undefined): void {
    const operation = operationOf(request)
    if (operation === undefined) return
    const path = request.path ?? file?.path ?? request.extension ?? ''
    const { type, flags = 0 } = request
    const direction = (flags & FXF.write) === 0 ? 'down' : 'up'
    this.#events.onRefused({ operation, path, ...(type === FXP.open && { direction }), reason })
  }

  /** Records a request that is no transfer. */
  #answered(request: SftpRequest, result: string, file?: SftpFile): void {
    const operation = operationOf(request)
    if (operation === undefined) {
      if (!isTransfer(request.type) && request.type !== FXP.close) this.#queries++
      return
    }
    this.#frames.file({
      operation,
      path: request.path ?? file?.path ?? request.extension ?? '',
      ...(request.target !== undefined && { target: request.target }),
      ...(request.size !== undefined && { size: request.size }),
      ...(request.extension === 'copy-data' && { size: request.length }),
      result,
    })
  }

  #finish(file: SftpFile, result: string): void {
    file.finish(result, (operation) => {
      this.#frames.file(operation)
      const { path, direction, size, sha256, result } = operation
      if (direction === undefined) return
      this.#events.onTransfer({
        path,
        direction,
        size: size ?? 0,
        ...(sha256 !== undefined && { sha256 }),
        result,
      })
    })
  }
}

function isTransfer(type: number): boolean {
  return type === FXP.read || type === FXP.write
}

/** Whether a reply type may answer a request (section 7); a status answers all. */
function answers(reply: number, request: number): boolean {
  switch (reply) {
    case FXP.handle:
      return request === FXP.open || request === FXP.opendir
    case FXP.data:
      return request === FXP.read
    case FXP.attrs:
      return request === FXP.stat || request === FXP.lstat || request === FXP.fstat
    case FXP.name:
      return [FXP.readdir, FXP.realpath, FXP.readlink, FXP.extended].some((type) => type === request)
    case FXP.extendedReply:
      return request === FXP.extended
  }
  return reply === FXP.status
}
