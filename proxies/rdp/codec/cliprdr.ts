/** The clipboard channel (MS-RDPECLIP): formats, data and files, as far as rights and audit need them. */
import { Buffer } from 'node:buffer'
import { latin1 } from '../../bytes/text.ts'
import { FORMAT, type FormatName, isTextFormat } from './clipboard-formats.ts'
import { ByteReader } from './reader.ts'
import { untilNul, utf16Bytes, utf16Text } from './utf16.ts'
import { ByteWriter } from './writer.ts'

/** Name of the static channel. */
export const CLIPRDR = 'cliprdr'
/** Bytes of one message that is inspected whole: a list of formats or files, or a text. */
export const CLIPBOARD_LIMIT = 8 * 1024 * 1024
/** Formats per list: Windows' programs offer about thirty. */
export const FORMAT_LIMIT = 512
const FORMAT_NAME_LIMIT = 512
/** Files per list. */
export const FILE_LIMIT = 10_000

const HEADER = 8
const SHORT_NAME = 32
const DESCRIPTOR = 592

export const CLIPBOARD_MESSAGE = {
  monitorReady: 1,
  formatList: 2,
  formatListResponse: 3,
  formatDataRequest: 4,
  formatDataResponse: 5,
  temporaryFolder: 6,
  capabilities: 7,
  fileContentsRequest: 8,
  fileContentsResponse: 9,
  lock: 10,
  unlock: 11,
} as const

export const CLIPBOARD_FLAG = { ok: 1, fail: 2, asciiNames: 4 } as const

/** generalFlags of the capabilities. */
export const CLIPBOARD_CAPABILITY = {
  longNames: 0x2,
  fileStreams: 0x4,
  noFilePaths: 0x8,
  locks: 0x10,
  hugeFiles: 0x20,
} as const
const FILE_CAPABILITIES =
  CLIPBOARD_CAPABILITY.fileStreams |
  CLIPBOARD_CAPABILITY.noFilePaths |
  CLIPBOARD_CAPABILITY.locks |
  CLIPBOARD_CAPABILITY.hugeFiles
const GENERAL_SET = 1
const GENERAL_LENGTH = 12
const SET_LIMIT = 16

export interface ClipboardMessage {
  /** One of CLIPBOARD_MESSAGE, or an unknown type. */
  type: number
  flags: number
  body: Uint8Array
}

export interface ClipboardFile {
  name: string
  size: number
  isFolder: boolean
}

export type FileContentsRequest = {
  stream: number
  /** Index within the list of files. */
  index: number
  /** The lock that keeps the list (clipDataId). Absent if the request is for the latest list. */
  lock: number | undefined
} & ({ kind: 'size' } | { kind: 'range'; offset: number; length: number })

/** Parses a whole message. Drops the padding that some peers append. */
export function parseClipboard(bytes: Uint8Array): ClipboardMessage {
  const reader = new ByteReader(bytes, 'clipboard')
  const type = reader.uint16()
  const flags = reader.uint16()
  return { type, flags, body: reader.bytes(reader.uint32()) }
}

export function buildClipboard(type: number, flags: number, body: Uint8Array = new Uint8Array(0)): Buffer {
  return new ByteWriter(HEADER + body.length)
    .uint16(type)
    .uint16(flags)
    .uint32(body.length)
    .bytes(body)
    .finish()
}

/** The general capability set of a message of type `capabilities`. */
export interface ClipboardCapabilities {
  /** CB_CAPS_VERSION, which no implementation uses. */
  version: number
  /** generalFlags: bits of CLIPBOARD_CAPABILITY. */
  flags: number
}

/** Returns the general set, or undefined if the message has none. */
export function parseClipboardCapabilities(body: Uint8Array): ClipboardCapabilities | undefined {
  const reader = new ByteReader(body, 'clipboard capabilities')
  const count = reader.uint16()
  reader.skip(2)
  if (SET_LIMIT < count) reader.fail(`at most ${SET_LIMIT} sets were expected, found ${count}`)
  for (let left = count; left > 0; left--) {
    const type = reader.uint16()
    const length = reader.uint16()
    if (length < 4) reader.fail(`a set of at least 4 bytes was expected, found ${length}`)
    const set = new ByteReader(reader.bytes(length - 4), 'clipboard capabilities')
    if (type === GENERAL_SET && 8 <= set.remaining) return { version: set.uint32(), flags: set.uint32() }
  }
  return undefined
}

/** Builds the general set with the known flags only; `files` keeps the flags about files too. */
export function buildClipboardCapabilities(
  capabilities: ClipboardCapabilities | undefined,
  files: boolean,
): Buffer {
  const writer = new ByteWriter(16).uint16(capabilities ? 1 : 0).uint16(0)
  if (capabilities) {
    const known = CLIPBOARD_CAPABILITY.longNames | (files ? FILE_CAPABILITIES : 0)
    writer.uint16(GENERAL_SET).uint16(GENERAL_LENGTH)
    writer.uint32(capabilities.version === 1 ? 1 : 2).uint32(capabilities.flags & known)
  }
  return buildClipboard(CLIPBOARD_MESSAGE.capabilities, 0, writer.finish())
}

/**
 * Parses a message of type `formatList`. `longNames`: both peers have CLIPBOARD_CAPABILITY.longNames. Keeps
 * the first of two formats with the same identifier.
 */
export function parseFormatList({ flags, body }: ClipboardMessage, longNames: boolean): FormatName[] {
  const reader = new ByteReader(body, 'clipboard format list')
  const isAscii = (flags & CLIPBOARD_FLAG.asciiNames) !== 0
  const formats = new Map<number, string>()
  for (let count = 0; reader.remaining > 0; count++) {
    if (count === FORMAT_LIMIT) reader.fail(`at most ${FORMAT_LIMIT} formats were expected`)
    const id = reader.uint32()
    const name = longNames ? readLongName(reader) : readShortName(reader, isAscii)
    if (!formats.has(id)) formats.set(id, name)
  }
  return Array.from(formats, ([id, name]) => ({ id, name }))
}

function readShortName(reader: ByteReader, isAscii: boolean): string {
  const bytes = reader.bytes(SHORT_NAME)
  return untilNul(isAscii ? latin1(bytes) : utf16Text(bytes))
}

function readLongName(reader: ByteReader): string {
  const units: number[] = []
  for (let unit = reader.uint16(); unit !== 0; unit = reader.uint16()) {
    if (units.length === FORMAT_NAME_LIMIT) {
      reader.fail(`a name of at most ${FORMAT_NAME_LIMIT} characters was expected`)
    }
    units.push(unit)
  }
  return String.fromCharCode(...units)
}

/** Builds a list of formats that `parseFormatList` read with the same `longNames` and flags. */
export function buildFormatList(formats: readonly FormatName[], longNames: boolean, flags: number): Buffer {
  const isAscii = !longNames && (flags & CLIPBOARD_FLAG.asciiNames) !== 0
  const writer = new ByteWriter()
  for (const { id, name } of formats) {
    const bytes = isAscii ? Buffer.from(name, 'latin1') : utf16Bytes(name)
    writer
      .uint32(id)
      .bytes(bytes)
      .zeros(longNames ? 2 : SHORT_NAME - bytes.length)
  }
  return buildClipboard(
    CLIPBOARD_MESSAGE.formatList,
    isAscii ? CLIPBOARD_FLAG.asciiNames : 0,
    writer.finish(),
  )
}

export function buildFormatRequest(format: number): Buffer {
  return buildClipboard(CLIPBOARD_MESSAGE.formatDataRequest, 0, new ByteWriter(4).uint32(format).finish())
}

/** Returns the format requested by a message of type `formatDataRequest`. */
export function parseFormatRequest(body: Uint8Array): number {
  return new ByteReader(body, 'clipboard format data request').uint32()
}

/** Cuts the body of a response in a text format after its terminator: a pasting program reads no further. */
export function untilTerminator(format: number, body: Uint8Array): Uint8Array {
  const width = format === FORMAT.unicodeText ? 2 : 1
  for (let at = 0; at + width <= body.length; at += width) {
    if (body[at] === 0 && (width === 1 || body[at + 1] === 0)) return body.subarray(0, at + width)
  }
  return body
}

/** Returns the text of a response to a request for this format, or undefined if it is no text format. */
export function clipboardText(format: number, body: Uint8Array): string | undefined {
  if (format === FORMAT.unicodeText) return untilNul(utf16Text(body))
  return isTextFormat(format) ? untilNul(latin1(body)) : undefined
}

const ATTRIBUTE_FOLDER = 0x10

/** Parses a `formatDataResponse` to a request for a format of `isFileList`. */
export function parseFileList(body: Uint8Array): ClipboardFile[] {
  const reader = new ByteReader(body, 'clipboard file list')
  const count = reader.uint32()
  if (FILE_LIMIT < count) reader.fail(`at most ${FILE_LIMIT} files were expected, found ${count}`)
  if (reader.remaining < count * DESCRIPTOR) {
    reader.fail(`${count} files of ${DESCRIPTOR} bytes were expected, found ${reader.remaining} bytes`)
  }
  return Array.from({ length: count }, () => {
    reader.skip(36)
    const isFolder = (reader.uint32() & ATTRIBUTE_FOLDER) !== 0
    reader.skip(16 + 8)
    const high = reader.uint32()
    const size = Math.min(high * 0x100000000 + reader.uint32(), Number.MAX_SAFE_INTEGER)
    return { name: untilNul(utf16Text(reader.bytes(520))), size, isFolder }
  })
}

const CONTENTS = { size: 1, range: 2 } as const
/** Offset of clipDataId, which is optional. */
const LOCK_AT = 24

/** Parses a message of type `fileContentsRequest`. */
export function parseFileContentsRequest(body: Uint8Array): FileContentsRequest {
  const reader = new ByteReader(body, 'clipboard file contents request')
  const stream = reader.uint32()
  const index = reader.uint32()
  const kind = reader.expect('kind', reader.uint32(), CONTENTS.size, CONTENTS.range)
  const lock =
    LOCK_AT + 4 <= body.length ? new ByteReader(body, 'clipboard lock', LOCK_AT).uint32() : undefined
  if (kind === CONTENTS.size) return { kind: 'size', stream, index, lock }
  return { kind: 'range', stream, index, lock, offset: reader.size(), length: reader.uint32() }
}

/** Bytes of the request's fields, including the optional clipDataId. */
const REQUEST_LENGTH = 28

/** Rebuilds a request that `parseFileContentsRequest` accepted, without bytes after its fields. */
export function rebuildFileContentsRequest(body: Uint8Array): Buffer {
  return buildClipboard(CLIPBOARD_MESSAGE.fileContentsRequest, 0, body.subarray(0, REQUEST_LENGTH))
}

/** Returns the clipDataId of a message of type `lock` or `unlock`. */
export function parseLock(body: Uint8Array): number {
  return new ByteReader(body, 'clipboard lock').uint32()
}

export function buildLock(type: number, id: number): Buffer {
  return buildClipboard(type, 0, new ByteWriter(4).uint32(id).finish())
}

/** Returns the streamId that a `fileContentsResponse`, or its first bytes, responds to. */
export function parseContentsStream(body: Uint8Array): number {
  return new ByteReader(body, 'clipboard file contents').uint32()
}

/** Builds a response that refuses a file's contents. */
export function buildFileRefusal(stream: number): Buffer {
  return buildClipboard(
    CLIPBOARD_MESSAGE.fileContentsResponse,
    CLIPBOARD_FLAG.fail,
    new ByteWriter(4).uint32(stream).finish(),
  )
}
