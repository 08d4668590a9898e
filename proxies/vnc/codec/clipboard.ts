/** Extended clipboard (community specification): the flags and the body of an extended cut text. */
import { Buffer } from 'node:buffer'
import { constants, deflateSync, inflateSync } from 'node:zlib'
import { MalformedError } from '../../bytes/malformed.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { CLIPBOARD_DATA_LIMIT } from './limits.ts'

export const FORMAT = { TEXT: 1, RTF: 2, HTML: 4, DIB: 8, FILES: 16 } as const
export const ACTION = {
  CAPS: 1 << 24,
  REQUEST: 1 << 25,
  PEEK: 1 << 26,
  NOTIFY: 1 << 27,
  PROVIDE: 1 << 28,
} as const

const FORMATS = 0xffff
const ACTIONS = ACTION.REQUEST | ACTION.PEEK | ACTION.NOTIFY | ACTION.PROVIDE

export type ClipboardMessage =
  /** The sender's capabilities, and the bytes of each format (lowest bit first) that it accepts unasked. */
  | { action: 'caps'; formats: number; actions: number; sizes: number[] }
  | { action: 'request' | 'peek' | 'notify'; formats: number }
  /** The data of each format's bit. Text is UTF-8 with CR LF and a zero byte at its end. */
  | { action: 'provide'; items: Map<number, Uint8Array> }

/** Returns true if data follows the flags: reading it costs more than sending it. */
export function isProvided(flags: number): boolean {
  return (flags & ACTION.CAPS) === 0 && (flags & ACTIONS) === ACTION.PROVIDE
}

/** `body`: the bytes after the flags. Throws MalformedError, also if the inflated data exceeds its limit. */
export function parseClipboard(flags: number, body: Uint8Array): ClipboardMessage {
  const formats = flags & FORMATS
  if (flags & ACTION.CAPS) {
    const count = bits(formats).length
    if (body.length < 4 * count) {
      throw new MalformedError(
        `vnc: a size for each of ${count} clipboard formats was expected, found ${body.length} bytes`,
      )
    }
    const sizes = Array.from({ length: count }, (_, index) => uint32At(body, 4 * index))
    return { action: 'caps', formats, actions: flags & ACTIONS, sizes }
  }
  switch (flags & ACTIONS) {
    case ACTION.REQUEST:
      return { action: 'request', formats }
    case ACTION.PEEK:
      return { action: 'peek', formats }
    case ACTION.NOTIFY:
      return { action: 'notify', formats }
    case ACTION.PROVIDE:
      return { action: 'provide', items: readItems(formats, inflated(body)) }
    default:
      throw new MalformedError(
        `vnc: one action of the clipboard was expected, found flags 0x${(flags >>> 0).toString(16)}`,
      )
  }
}

const ASKING = { request: ACTION.REQUEST, peek: ACTION.PEEK, notify: ACTION.NOTIFY } as const

/** Returns the flags and the body of an extended cut text. */
export function encodeClipboard(message: ClipboardMessage): { flags: number; body: Buffer } {
  switch (message.action) {
    case 'caps':
      return {
        flags: ACTION.CAPS | message.actions | message.formats,
        body: Buffer.concat(message.sizes.map(uint32)),
      }
    case 'provide': {
      const items = [...message.items].sort(([a], [b]) => a - b)
      return {
        flags: items.reduce((flags, [format]) => flags | format, ACTION.PROVIDE as number),
        body: deflateSync(Buffer.concat(items.flatMap(([, data]) => [uint32(data.length), data]))),
      }
    }
    default:
      return { flags: ASKING[message.action] | message.formats, body: Buffer.alloc(0) }
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/**
 * Returns the message with these formats (bits of `FORMAT`) only, or undefined if nothing is left. A `notify`
 * without formats stays: it reports an empty clipboard.
 */
export function onlyFormats(message: ClipboardMessage, formats: number): ClipboardMessage | undefined {
  switch (message.action) {
    case 'caps': {
      const sizes = message.sizes.filter((_size, index) => bits(message.formats)[index]! & formats)
      return { ...message, formats: message.formats & formats, sizes }
    }
    case 'provide': {
      const items = new Map([...message.items].filter(([format]) => format & formats))
      return items.size > 0 ? { ...message, items } : undefined
    }
    default: {
      const left = message.formats & formats
      return left === 0 && message.formats !== 0 ? undefined : { ...message, formats: left }
    }
  }
}

/** Returns the formats of a message (bits of `FORMAT`). */
export function formatsOf(flags: number): number[] {
  return bits(flags & FORMATS)
}

function inflated(body: Uint8Array): Buffer {
  try {
    // Senders flush the stream without ending it.
    return inflateSync(body, { maxOutputLength: CLIPBOARD_DATA_LIMIT, finishFlush: constants.Z_SYNC_FLUSH })
  } catch (error) {
    throw new MalformedError(
      `vnc: at most ${CLIPBOARD_DATA_LIMIT} bytes of clipboard were expected, compressed by zlib: ${(error as Error).message}`,
    )
  }
}

function readItems(formats: number, data: Buffer): Map<number, Uint8Array> {
  const items = new Map<number, Uint8Array>()
  let at = 0
  for (const format of bits(formats)) {
    const size = at + 4 <= data.length ? uint32At(data, at) : undefined
    if (size === undefined || data.length - at - 4 < size) {
      throw new MalformedError(
        `vnc: the clipboard's data of format ${format} was expected, found ${data.length - at} bytes`,
      )
    }
    items.set(format, data.subarray(at + 4, at + 4 + size))
    at += 4 + size
  }
  return items
}

/** Returns the set bits, lowest first. */
function bits(mask: number): number[] {
  const set: number[] = []
  for (let bit = 1; bit <= mask; bit <<= 1) if (mask & bit) set.push(bit)
  return set
}
