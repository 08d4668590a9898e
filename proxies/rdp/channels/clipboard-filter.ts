/**
 * The clipboard between a client and a target, held to rights: who may offer what, what is asked for, and what is
 * given. What is not allowed is answered here as its receiver would answer it, so that both peers stay in order: a
 * list of formats is taken and forgotten, a request is refused. Formats pass by a list of what they are; what passes is
 * told by its size and hash. Messages that pass are built anew: what nobody has read of them would be a way around the
 * rights.
 */
import { Buffer } from 'node:buffer'
import { createHash, type Hash, hash } from 'node:crypto'
import {
  type FormatName,
  isFileList,
  isTextFormat,
  kindOfFormat,
  labelOfFormat,
} from '../codec/clipboard-formats.ts'
import {
  buildClipboard,
  buildClipboardCapabilities,
  buildFileRefusal,
  buildFormatList,
  buildFormatRequest,
  buildLock,
  CLIPBOARD_CAPABILITY,
  CLIPBOARD_FLAG,
  CLIPBOARD_LIMIT,
  CLIPBOARD_MESSAGE,
  CLIPRDR,
  type ClipboardFile,
  type ClipboardMessage,
  clipboardText,
  type FileContentsRequest,
  parseClipboard,
  parseClipboardCapabilities,
  parseContentsStream,
  parseFileContentsRequest,
  parseFileList,
  parseFormatList,
  parseFormatRequest,
  parseLock,
  rebuildFileContentsRequest,
  untilTerminator,
} from '../codec/cliprdr.ts'
import {
  type Direction,
  directionFrom,
  otherSide,
  type SendChunk,
  type Side,
  sendMessage,
} from './direction.ts'
import { FileParts } from './file-parts.ts'
import { MessageStream } from './message-stream.ts'
import { type FileList, OfferedFiles } from './offered-files.ts'

/** Longer answers pass chunk by chunk where they are no text: pictures, and parts of files. */
const HELD_ANSWER = 64 * 1024
/** Of a large answer: its header, and the number of the request that parts of files answer. */
const LARGE_BEGIN = 12
/** Requests that have not been answered; peers ask for one thing at a time. */
const PENDING_LIMIT = 256
/** Bytes of an answer that tells a file's size: the request's number, and the size. */
const SIZE_ANSWER = 12
/** Bytes of a message's header. */
const HEADER = 8

export interface ClipboardRights {
  /** From the client to the target. */
  up: boolean
  down: boolean
  /** Files as well, in the directions that are allowed. */
  files: boolean
}

export interface ClipboardVisitor {
  /** One side has put something on its clipboard that the other may not have, at all or as files. */
  denied(direction: Direction, what: 'clipboard' | 'files'): void
  /** Text has been pasted, of so many bytes in UTF-8. */
  text(direction: Direction, text: string, bytes: number): void
  /** Something else has been pasted, as what it is called; without a hash it did not come whole. */
  data(direction: Direction, format: string, bytes: number, sha256: string | undefined): void
  /** The names of files are known to the other side. */
  files(direction: Direction, files: readonly ClipboardFile[]): void
  /** So many bytes of one of those files have passed: all of it, or what it was until it ended. */
  transferred(direction: Direction, file: ClipboardFile, bytes: number): void
}

export interface ClipboardFilterOptions {
  rights: ClipboardRights
  visitor: ClipboardVisitor
  send: SendChunk
}

/** What one side has offered to the other. */
interface Offer {
  /** By their identifiers; empty: nothing, or nothing that the other may have. */
  formats: Map<number, string>
  /** Lists that have been passed on, and not been answered. */
  lists: number
  /** Formats that the other has asked for, as they were called then, and what list of files that would be. */
  asked: Asked[]
  files: OfferedFiles
  parts: FileParts
  /** What passes piece by piece just now. */
  passing: Passing | undefined
}

interface Asked extends FormatName {
  list: FileList
}

interface Passing {
  label: string
  hash: Hash
  /** Bytes that have passed, with the header. */
  bytes: number
}

const createOffer = (onGone: (file: ClipboardFile, bytes: number) => void): Offer => ({
  formats: new Map(),
  lists: 0,
  asked: [],
  files: new OfferedFiles(),
  parts: new FileParts(onGone),
  passing: undefined,
})

export class ClipboardFilter {
  readonly #options: ClipboardFilterOptions
  readonly #streams: Record<Side, MessageStream>
  readonly #offers: Record<Side, Offer>
  /** Whether its capabilities say that it has long names: xrdp writes such before it has been told anything. */
  readonly #longNames: Record<Side, boolean | undefined> = { client: undefined, target: undefined }

  constructor(options: ClipboardFilterOptions) {
    this.#options = options
    const { visitor } = options
    this.#offers = {
      client: createOffer((file, bytes) => visitor.transferred('up', file, bytes)),
      target: createOffer((file, bytes) => visitor.transferred('down', file, bytes)),
    }
    this.#streams = { client: this.#createStream('client'), target: this.#createStream('target') }
  }

  /** A chunk with its header. Throws MalformedError. */
  receive(from: Side, chunk: Uint8Array): void {
    this.#streams[from].receive(chunk)
  }

  /** Nothing more comes. */
  close(): void {
    for (const from of ['client', 'target'] as const) {
      this.#offers[from].parts.end()
      this.#passed(from, false)
    }
  }

  #createStream(from: Side): MessageStream {
    return new MessageStream({
      name: CLIPRDR,
      limit: CLIPBOARD_LIMIT,
      take: (message) => this.#take(from, parseClipboard(message)),
      large: {
        judge: (begin, length) => this.#judgeLarge(from, begin, length),
        pass: (chunk, data, isLast) => {
          this.#piece(from, data, isLast)
          this.#options.send(otherSide(from), chunk)
        },
      },
    })
  }

  #take(from: Side, message: ClipboardMessage): void {
    const { type, flags, body } = message
    switch (type) {
      case CLIPBOARD_MESSAGE.monitorReady:
        if (from === 'target') this.#pass(from, buildClipboard(type, 0))
        return
      case CLIPBOARD_MESSAGE.capabilities:
        this.#capabilities(from, body)
        return
      case CLIPBOARD_MESSAGE.formatList:
        this.#formatList(from, message)
        return
      case CLIPBOARD_MESSAGE.formatListResponse:
        if (take(this.#offers[otherSide(from)])) this.#pass(from, buildClipboard(type, resultOf(flags)))
        return
      case CLIPBOARD_MESSAGE.formatDataRequest:
        this.#formatRequest(from, body)
        return
      case CLIPBOARD_MESSAGE.formatDataResponse:
        this.#formatAnswer(from, message)
        return
      case CLIPBOARD_MESSAGE.fileContentsRequest:
        this.#fileRequest(from, body)
        return
      case CLIPBOARD_MESSAGE.fileContentsResponse:
        this.#fileAnswer(from, message)
        return
      case CLIPBOARD_MESSAGE.lock:
      case CLIPBOARD_MESSAGE.unlock:
        this.#lock(from, type, parseLock(body))
    }
  }

  /** Answers in many chunks: the begin has their header, and nothing more is needed to know what becomes of them. */
  #judgeLarge(from: Side, begin: Uint8Array, length: number): 'hold' | 'pass' | 'drop' {
    if (length < HELD_ANSWER || begin.length < LARGE_BEGIN) return 'hold'
    const type = begin[0]! | (begin[1]! << 8)
    const message = { type, flags: begin[2]! | (begin[3]! << 8), body: begin.subarray(8) }
    if (type === CLIPBOARD_MESSAGE.fileContentsResponse) {
      return this.#fileResponse(from, message, length - LARGE_BEGIN) === 'range' ? 'pass' : 'drop'
    }
    if (type !== CLIPBOARD_MESSAGE.formatDataResponse) return 'hold'
    const [asked] = this.#offers[from].asked
    if (asked && isTextFormat(asked.id) && CLIPBOARD_LIMIT < length) {
      // More than can be looked at.
      this.#formatResponse(from, { ...message, flags: CLIPBOARD_FLAG.fail })
      return 'drop'
    }
    // Texts, and the names of many files, are needed whole.
    if (asked && (isTextFormat(asked.id) || isFileList(asked))) return 'hold'
    const given = this.#formatResponse(from, message)
    if (!given) return 'drop'
    this.#offers[from].passing = { label: labelOfFormat(given), hash: createHash('sha256'), bytes: 0 }
    return 'pass'
  }

  /** Of what passes piece by piece. */
  #piece(from: Side, data: Uint8Array, isLast: boolean): void {
    const { passing } = this.#offers[from]
    if (!passing) return
    passing.hash.update(data.subarray(Math.max(0, HEADER - passing.bytes)))
    passing.bytes += data.length
    if (isLast) this.#passed(from, true)
  }

  #passed(from: Side, isWhole: boolean): void {
    const offer = this.#offers[from]
    const { passing } = offer
    if (!passing) return
    offer.passing = undefined
    const sha256 = isWhole ? passing.hash.digest('hex') : undefined
    const bytes = Math.max(0, passing.bytes - HEADER)
    this.#options.visitor.data(directionFrom(from), passing.label, bytes, sha256)
  }

  get #hasLongNames(): boolean {
    return this.#longNames.client !== false && this.#longNames.target !== false
  }

  #pass(from: Side, message: Uint8Array): void {
    sendMessage(this.#options.send, otherSide(from), message)
  }

  #answer(to: Side, message: Uint8Array): void {
    sendMessage(this.#options.send, to, message)
  }

  #mayOffer(from: Side): boolean {
    return this.#options.rights[directionFrom(from)]
  }

  /** What a side has said of its names holds: of lists of one kind the other would read other formats than were read here. */
  #capabilities(from: Side, body: Uint8Array): void {
    const capabilities = parseClipboardCapabilities(body)
    const longNames = ((capabilities?.flags ?? 0) & CLIPBOARD_CAPABILITY.longNames) !== 0
    this.#longNames[from] ??= longNames
    if (this.#longNames[from] !== longNames) return
    this.#pass(from, buildClipboardCapabilities(capabilities, this.#options.rights.files))
  }

  #formatList(from: Side, message: ClipboardMessage): void {
    const { rights, visitor } = this.#options
    const direction = directionFrom(from)
    const offer = this.#offers[from]
    const formats = parseFormatList(message, this.#hasLongNames)
    offer.formats.clear()
    if (!this.#mayOffer(from)) {
      if (formats.length > 0) visitor.denied(direction, 'clipboard')
      this.#answer(from, buildClipboard(CLIPBOARD_MESSAGE.formatListResponse, CLIPBOARD_FLAG.ok))
      return
    }
    const kinds = formats.map(kindOfFormat)
    const allowed = formats.filter((_, at) => rights.files || kinds[at] === 'text' || kinds[at] === 'picture')
    // Programs offer formats of their own beside a text, which nobody misses.
    const isMissed = kinds.includes('files') || (allowed.length === 0 && formats.length > 0)
    if (isMissed && !rights.files) visitor.denied(direction, 'files')
    for (const { id, name } of allowed) offer.formats.set(id, name)
    if (allowed.some(isFileList)) offer.files.offer()
    put(offer)
    this.#pass(from, buildFormatList(allowed, this.#hasLongNames, message.flags))
  }

  /** `from` asks for what the other side has offered. */
  #formatRequest(from: Side, body: Uint8Array): void {
    const offer = this.#offers[otherSide(from)]
    const id = parseFormatRequest(body)
    const name = offer.formats.get(id)
    if (name === undefined || offer.asked.length === PENDING_LIMIT) {
      this.#answer(from, buildClipboard(CLIPBOARD_MESSAGE.formatDataResponse, CLIPBOARD_FLAG.fail))
      return
    }
    offer.asked.push({ id, name, list: offer.files.last })
    this.#pass(from, buildFormatRequest(id))
  }

  #formatAnswer(from: Side, message: ClipboardMessage): void {
    const asked = this.#formatResponse(from, message)
    if (!asked) return
    const { visitor } = this.#options
    const direction = directionFrom(from)
    // Behind the end of a text nobody looks who pastes it, and nobody else either.
    const body = isTextFormat(asked.id) ? untilTerminator(asked.id, message.body) : message.body
    const text = clipboardText(asked.id, body)
    if (text !== undefined) visitor.text(direction, text, Buffer.byteLength(text))
    else if (isFileList(asked)) {
      const { files, parts } = this.#offers[from]
      parts.end()
      files.give(asked.list, parseFileList(body))
      visitor.files(direction, asked.list.files)
    } else visitor.data(direction, labelOfFormat(asked), body.length, hash('sha256', body))
    this.#pass(from, buildClipboard(CLIPBOARD_MESSAGE.formatDataResponse, CLIPBOARD_FLAG.ok, body))
  }

  /** What was asked for, where the answer may pass: somebody has, and it holds something. */
  #formatResponse(from: Side, { flags }: ClipboardMessage): Asked | undefined {
    const asked = this.#offers[from].asked.shift()
    if (!asked || !(flags & CLIPBOARD_FLAG.fail)) return asked
    this.#pass(from, buildClipboard(CLIPBOARD_MESSAGE.formatDataResponse, CLIPBOARD_FLAG.fail))
    return undefined
  }

  /** `from` asks for a part of a file that the other side has offered. */
  #fileRequest(from: Side, body: Uint8Array): void {
    const { rights } = this.#options
    const side = otherSide(from)
    const offer = this.#offers[side]
    const request = parseFileContentsRequest(body)
    const file = offer.files.find(request.lock, request.index)
    if (!rights.files || !this.#mayOffer(side) || !file || !offer.parts.ask(file, request)) {
      this.#answer(from, buildFileRefusal(request.stream))
      return
    }
    this.#pass(from, rebuildFileContentsRequest(body))
  }

  #fileAnswer(from: Side, message: ClipboardMessage): void {
    const { type, body } = message
    const kind = this.#fileResponse(from, message, Math.max(0, body.length - 4))
    const given = kind === 'size' ? body.subarray(0, SIZE_ANSWER) : body
    if (kind) this.#pass(from, buildClipboard(type, CLIPBOARD_FLAG.ok, given))
  }

  /** As `#formatResponse`, of so many bytes of a file, or of its size. */
  #fileResponse(
    from: Side,
    { flags, body }: ClipboardMessage,
    bytes: number,
  ): FileContentsRequest['kind'] | undefined {
    const { parts } = this.#offers[from]
    const stream = parseContentsStream(body)
    const asked = parts.answer(stream)
    if (!asked) return undefined
    if (flags & CLIPBOARD_FLAG.fail) {
      this.#pass(from, buildFileRefusal(stream))
      return undefined
    }
    if (asked.kind === 'range') parts.pass(asked.file, bytes)
    return asked.kind
  }

  /** `from` keeps the other side from forgetting a list of files, or does so no longer. */
  #lock(from: Side, type: number, id: number): void {
    const side = otherSide(from)
    const { files } = this.#offers[side]
    if (!this.#options.rights.files || !this.#mayOffer(side)) return
    const isDone = type === CLIPBOARD_MESSAGE.unlock ? files.unlock(id) : files.lock(id)
    if (isDone) this.#pass(from, buildLock(type, id))
  }
}

/** Of an answer that says no more than whether it went well. */
const resultOf = (flags: number): number =>
  flags & CLIPBOARD_FLAG.fail ? CLIPBOARD_FLAG.fail : CLIPBOARD_FLAG.ok

/** Counts one more list that waits for an answer; false: there are too many. */
function put(offer: Offer): boolean {
  if (offer.lists === PENDING_LIMIT) return false
  offer.lists++
  return true
}

/** Counts one that has been answered; false: nobody waits. */
function take(offer: Offer): boolean {
  if (offer.lists === 0) return false
  offer.lists--
  return true
}
