/**
 * SFTP version 3 (draft-ietf-secsh-filexfer-02) and OpenSSH's extensions (its PROTOCOL, section 4): numbers
 * and requests. Parsers read the body after the type and throw MalformedError.
 */

import { MalformedError } from '../../bytes/malformed.ts'
import { displayText, latin1 } from '../../bytes/text.ts'
import { Reader } from './reader.ts'

/** Section 3. */
export const FXP = {
  init: 1,
  version: 2,
  open: 3,
  close: 4,
  read: 5,
  write: 6,
  lstat: 7,
  fstat: 8,
  setstat: 9,
  fsetstat: 10,
  opendir: 11,
  readdir: 12,
  remove: 13,
  mkdir: 14,
  rmdir: 15,
  realpath: 16,
  stat: 17,
  rename: 18,
  readlink: 19,
  symlink: 20,
  status: 101,
  handle: 102,
  data: 103,
  name: 104,
  attrs: 105,
  extended: 200,
  extendedReply: 201,
} as const

/** Section 6.3, pflags. */
export const FXF = { read: 1, write: 2, append: 4, creat: 8, trunc: 16, excl: 32 } as const
/** Section 5: the attributes begin with uint64 size. */
export const ATTR_SIZE = 1

/** Section 7. */
export const FX_OK = 0
export const FX_EOF = 1
export const FX_NO_SUCH_FILE = 2
export const FX_PERMISSION_DENIED = 3
export const FX_FAILURE = 4
const STATUS_TEXT = [
  'ok',
  'end of file',
  'no such file',
  'permission denied',
  'failure',
  'bad message',
  'no connection',
  'connection lost',
  'operation unsupported',
]

/** Returns the words for a status code, for recordings. */
export function statusText(code: number): string {
  return STATUS_TEXT[code] ?? `status ${code}`
}

/** The supported version; lower versions have the same messages. */
export const VERSION = 3
/** Section 4: the longest handle that a server may return. */
export const HANDLE_LIMIT = 256
/** Section 3: the packet size that every implementation must support. Only data may be longer. */
export const REQUEST_LIMIT = 34_000

export interface SftpRequest {
  type: number
  id: number
  /** The exact bytes, one character each. */
  handle?: string
  /** For recordings: UTF-8 with replacement. `target` is the second path or handle on the wire. */
  path?: string
  target?: string
  targetHandle?: string
  flags?: number
  /** Size in the attributes (open, setstat). */
  size?: number
  offset?: number
  targetOffset?: number
  length?: number
  /** Name of the extension. */
  extension?: string
}

/** PATH_MAX of Linux: no target accepts longer paths, and a frame has room for them. */
const PATH_TEXT_LIMIT = 4096

/** Decodes a path for recordings: UTF-8 with replacement, cut after PATH_MAX bytes. */
export function pathText(path: Uint8Array): string {
  if (path.length <= PATH_TEXT_LIMIT) return displayText(path)
  return `${displayText(path.subarray(0, PATH_TEXT_LIMIT))}… (${path.length} bytes)`
}

/** Parses any request except INIT and WRITE. */
export function parseRequest(type: number, body: Uint8Array): SftpRequest {
  const reader = new Reader(body, `sftp request ${type}`)
  const id = reader.uint32()
  switch (type) {
    // uint32 id, string filename, uint32 pflags, ATTRS
    case FXP.open:
      return { type, id, path: pathText(reader.string()), flags: reader.uint32(), ...attributes(reader) }
    // uint32 id, string handle, uint64 offset, uint32 len
    case FXP.read:
      return { type, id, handle: handleOf(reader), offset: reader.size(), length: reader.uint32() }
    // uint32 id, string handle
    case FXP.close:
    case FXP.fstat:
    case FXP.readdir:
      return { type, id, handle: handleOf(reader) }
    // uint32 id, string handle, ATTRS
    case FXP.fsetstat:
      return { type, id, handle: handleOf(reader), ...attributes(reader) }
    // uint32 id, string path, ATTRS
    case FXP.setstat:
    case FXP.mkdir:
      return { type, id, path: pathText(reader.string()), ...attributes(reader) }
    // uint32 id, string path
    case FXP.lstat:
    case FXP.stat:
    case FXP.opendir:
    case FXP.remove:
    case FXP.rmdir:
    case FXP.realpath:
    case FXP.readlink:
      return { type, id, path: pathText(reader.string()) }
    // uint32 id, string path, string path. OpenSSH's SYMLINK has the existing path first.
    case FXP.rename:
    case FXP.symlink:
      return { type, id, path: pathText(reader.string()), target: pathText(reader.string()) }
    // uint32 id, string extended-request, data
    case FXP.extended:
      return parseExtended(id, reader)
  }
  throw new MalformedError(`sftp: a request of version ${VERSION} was expected, found type ${type}`)
}

function parseExtended(id: number, reader: Reader): SftpRequest {
  const extension = latin1(reader.string(256))
  const request = { type: FXP.extended, id, extension }
  switch (extension) {
    // string path, string path
    case 'posix-rename@openssh.com':
    case 'hardlink@openssh.com':
      return { ...request, path: pathText(reader.string()), target: pathText(reader.string()) }
    // string path, ATTRS
    case 'lsetstat@openssh.com':
      return { ...request, path: pathText(reader.string()), ...attributes(reader) }
    // string read-from-handle, uint64 offset, uint64 length, string write-to-handle, uint64 offset
    case 'copy-data':
      return {
        ...request,
        handle: handleOf(reader),
        offset: reader.size(),
        length: reader.size(),
        targetHandle: handleOf(reader),
        targetOffset: reader.size(),
      }
  }
  return request
}

/** Length of WRITE's fields before the data, as far as `head` shows it: id, handle, offset, data length. */
function writeHeadLength(head: Uint8Array): number {
  if (head.length < 8) return 8
  const reader = new Reader(head, 'sftp write', 4)
  const handle = reader.uint32()
  if (HANDLE_LIMIT < handle) {
    throw new MalformedError(
      `sftp write: a handle of at most ${HANDLE_LIMIT} bytes was expected, found ${handle}`,
    )
  }
  return 8 + handle + 12
}

/** uint32 id, string handle, uint64 offset, string data: parses all but the data. */
export function parseWriteHead(
  head: Uint8Array,
): Required<Pick<SftpRequest, 'id' | 'handle' | 'offset' | 'length'>> {
  const reader = new Reader(head, 'sftp write')
  return { id: reader.uint32(), handle: handleOf(reader), offset: reader.size(), length: reader.uint32() }
}

function handleOf(reader: Reader): string {
  return latin1(reader.string(HANDLE_LIMIT))
}

/** uint32 flags, then uint64 size if its flag is set (section 5); other attributes are not needed here. */
function attributes(reader: Reader): { size?: number } {
  return (reader.uint32() & ATTR_SIZE) === 0 ? {} : { size: reader.size() }
}

/** Returns how many bytes of a request must be parsed: all except a WRITE's data. */
export function requestHead(type: number, length: number, head: Uint8Array): number {
  if (type === FXP.write) return writeHeadLength(head)
  if (type === FXP.init) return 4
  if (REQUEST_LIMIT < length) {
    throw new MalformedError(
      `sftp: a request of at most ${REQUEST_LIMIT} bytes was expected, found ${length}`,
    )
  }
  return length
}

/** Returns how many bytes of a reply must be parsed: not the names of NAME, nor the text of STATUS. */
export function replyHead(type: number, length: number): number {
  switch (type) {
    case FXP.version:
    case FXP.name:
    case FXP.extendedReply:
      return 4
    case FXP.status:
    case FXP.data:
      return 8
    case FXP.attrs:
      return Math.min(length, 16)
    case FXP.handle:
      if (8 + HANDLE_LIMIT < length) {
        throw new MalformedError(
          `sftp: a handle of at most ${HANDLE_LIMIT} bytes was expected, found ${length - 8}`,
        )
      }
      return length
  }
  throw new MalformedError(`sftp: an answer of version ${VERSION} was expected, found type ${type}`)
}
