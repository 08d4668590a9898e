/** RFC 6143 section 7.3.2: a server's first message about its desktop. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { displayText } from '../../bytes/text.ts'
import { uint16At } from '../../bytes/uint16.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { checkFramebufferSize, NAME_LIMIT } from './limits.ts'
import { encodePixelFormat, PIXEL_FORMAT_BYTES, type PixelFormat, parsePixelFormat } from './pixel-format.ts'

export interface ServerInit {
  width: number
  height: number
  format: PixelFormat
  /** As sent by the server; it may contain any characters. */
  name: string
}

const FORMAT_AT = 4
const NAME_LENGTH_AT = FORMAT_AT + PIXEL_FORMAT_BYTES
const NAME_AT = NAME_LENGTH_AT + 4

/**
 * Returns the ServerInit at the beginning, and its length, or undefined while it is incomplete. Throws
 * MalformedError.
 */
export function parseServerInit(bytes: Uint8Array): { init: ServerInit; length: number } | undefined {
  if (bytes.length < NAME_AT) return undefined
  const width = uint16At(bytes, 0)
  const height = uint16At(bytes, 2)
  checkFramebufferSize(width, height)
  const format = parsePixelFormat(bytes, FORMAT_AT)
  const nameLength = uint32At(bytes, NAME_LENGTH_AT)
  if (NAME_LIMIT < nameLength) {
    throw new MalformedError(
      `vnc: a desktop's name of at most ${NAME_LIMIT} bytes was expected, found ${nameLength}`,
    )
  }
  const length = NAME_AT + nameLength
  if (bytes.length < length) return undefined
  return { init: { width, height, format, name: displayText(bytes.subarray(NAME_AT, length)) }, length }
}

/** Cuts a name that is too long. */
export function encodeServerInit({ width, height, format, name }: ServerInit): Buffer {
  const text = Buffer.from(name, 'utf8').subarray(0, NAME_LIMIT)
  const head = Buffer.alloc(NAME_AT)
  head.writeUInt16BE(width, 0)
  head.writeUInt16BE(height, 2)
  encodePixelFormat(format).copy(head, FORMAT_AT)
  head.writeUInt32BE(text.length, NAME_LENGTH_AT)
  return Buffer.concat([head, text])
}
