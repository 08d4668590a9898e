/**
 * Filters the clipboard by rights. A message that is not allowed gets its receiver's response, so that both
 * peers stay in step: a list of formats is acknowledged and dropped, a request is refused. Forwarded messages
 * are rebuilt, since bytes that were not parsed could bypass the rights; their data is logged with size and
 * hash.
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

/** From this size, responses that are no text (pictures, parts of files) are forwarded chunk by chunk. */
const HELD_ANSWER = 64 * 1024
/** Bytes needed to judge a large response: its header, and the streamId of a file response. */
const LARGE_BEGIN = 12
/** Outstanding requests; peers send one at a time. */
const PENDING_LIMIT = 256
/** Bytes of a response with a file's size: streamId and size. */
const SIZE_ANSWER = 12
/** Bytes of a message's header. */
const HEADER = 8

export interface ClipboardRights {
  /** From the client to the target. */
  up: boolean
  down: boolean
  /** Allows files too, in the allowed directions. */
  files: boolean
}

export interface ClipboardVisitor {
  /** One side offered data that the other may not have, at all or as files. */
  denied(direction: Direction, what: 'clipboard' | 'files'): void
  /** Text was pasted; `bytes` is its size in UTF-8. */
  text(direction: Direction, text: string, bytes: number): void
  /** Other data was pasted. `sha256` is absent if the data was incomplete. */
  data(direction: Direction, format: string, bytes: number, sha256: string | undefined): void
  /** The other side has received the names of these files. */
  files(direction: Direction, files: readonly ClipboardFile[]): void
  /** Bytes of one of those files were forwarded: all of it, or the part sent before the transfer ended. */
  transferred(direction: Direction, file: ClipboardFile, bytes: number): void
}

export interface ClipboardFilterOptions {
  rights: ClipboardRights
  visitor: ClipboardVisitor
  send: SendChunk
}

/** One side's offer to the other. */
interface Offer {
  /** Names by identifier; empty if the other side may have none of the formats. */
  formats: Map<number, string>
  /** Forwarded lists without a response yet. */
  lists: number
  /** Formats requested by the other side, with their names and their list of files at that time. */
  asked: Asked[]
  files: OfferedFiles
  parts: FileParts
  /** The response that is being forwarded chunk by chunk. */
  passing: Passing | undefined
}

interface Asked extends FormatName {
  list: FileList
}

interface Passing {
  label: string
  hash: Hash
  /** Bytes forwarded, including the header. */
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
  /** Long names announced in the capabilities. xrdp uses long names before any arrive. */
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

  /** Receives a chunk with its header. Throws MalformedError. */
  receive(from: Side, chunk: Uint8Array): void {
    this.#streams[from].receive(chunk)
  }

  /** Reports incomplete transfers; nothing is received afterwards. */
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

  /** Judges a response of several chunks by its first bytes, which hold all that is needed. */
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
      // Too large to inspect.
      this.#formatResponse(from, { ...message, flags: CLIPBOARD_FLAG.fail })
      return 'drop'
    }
    // Texts and lists of files are needed whole.
    if (asked && (isTextFormat(asked.id) || isFileList(asked))) return 'hold'
    const given = this.#formatResponse(from, message)
    if (!given) return 'drop'
    this.#offers[from].passing = { label: labelOfFormat(given), hash: createHash('sha256'), bytes: 0 }
    return 'pass'
  }

  /** Hashes and counts a chunk that is forwarded. */
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

  /** Drops a change of the names: the receiver would then parse lists differently than this filter. */
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
    // Reports a denial only if the user loses something: programs offer private formats along with a text.
    const isMissed = kinds.includes('files') || (allowed.length === 0 && formats.length > 0)
    if (isMissed && !rights.files) visitor.denied(direction, 'files')
    for (const { id, name } of allowed) offer.formats.set(id, name)
    if (allowed.some(isFileList)) offer.files.offer()
    put(offer)
    this.#pass(from, buildFormatList(allowed, this.#hasLongNames, message.flags))
  }

  /** `from` requests data that the other side offered. */
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
    // Drops bytes after the end of a text, which neither the pasting program nor the log reads.
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

  /** Returns the request of this response, or undefined if there is none or the response is a failure. */
  #formatResponse(from: Side, { flags }: ClipboardMessage): Asked | undefined {
    const asked = this.#offers[from].asked.shift()
    if (!asked || !(flags & CLIPBOARD_FLAG.fail)) return asked
    this.#pass(from, buildClipboard(CLIPBOARD_MESSAGE.formatDataResponse, CLIPBOARD_FLAG.fail))
    return undefined
  }

  /** `from` requests a part of a file that the other side offered. */
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

  /** As `#formatResponse`, for a part of a file or for its size. */
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

  /** `from` locks or unlocks a list of files of the other side. */
  #lock(from: Side, type: number, id: number): void {
    const side = otherSide(from)
    const { files } = this.#offers[side]
    if (!this.#options.rights.files || !this.#mayOffer(side)) return
    const isDone = type === CLIPBOARD_MESSAGE.unlock ? files.unlock(id) : files.lock(id)
    if (isDone) this.#pass(from, buildLock(type, id))
  }
}

/** Reduces a response's flags to success or failure. */
const resultOf = (flags: number): number =>
  flags & CLIPBOARD_FLAG.fail ? CLIPBOARD_FLAG.fail : CLIPBOARD_FLAG.ok

/** Counts a list that awaits its response. Returns false if there are too many. */
function put(offer: Offer): boolean {
  if (offer.lists === PENDING_LIMIT) return false
  offer.lists++
  return true
}

/** Counts a response to a list. Returns false if none is outstanding. */
function take(offer: Offer): boolean {
  if (offer.lists === 0) return false
  offer.lists--
  return true
}
