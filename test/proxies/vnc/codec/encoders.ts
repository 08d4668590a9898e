/** What only peers send: messages of a server that the bastion has no reason for, and contents of a clipboard. */
import { Buffer } from 'node:buffer'
import { deflateSync } from 'node:zlib'
import {
  encodeClientCutText,
  encodeClientFence,
  encodeExtendedClientCutText,
} from '../../../../proxies/vnc/codec/client-encoder.ts'
import { ACTION, type ClipboardMessage } from '../../../../proxies/vnc/codec/clipboard.ts'
import { SERVER_MESSAGE } from '../../../../proxies/vnc/codec/server-encoder.ts'

/** Servers have the same messages as viewers, of other types. */
function ofServer(type: number, message: Buffer): Buffer {
  message[0] = type
  return message
}

/** Latin-1. */
export const encodeServerCutText = (text: Uint8Array): Buffer =>
  ofServer(SERVER_MESSAGE.CUT_TEXT, encodeClientCutText(text))

export const encodeExtendedServerCutText = (flags: number, body: Uint8Array): Buffer =>
  ofServer(SERVER_MESSAGE.CUT_TEXT, encodeExtendedClientCutText(flags, body))

export const encodeServerFence = (flags: number, payload: Uint8Array): Buffer =>
  ofServer(SERVER_MESSAGE.FENCE, encodeClientFence(flags, payload))

export const encodeEndOfContinuousUpdates = (): Buffer => Buffer.of(SERVER_MESSAGE.END_OF_CONTINUOUS_UPDATES)

const ACTIONS = { request: ACTION.REQUEST, peek: ACTION.PEEK, notify: ACTION.NOTIFY } as const

/** The flags and the body of an extended cut text. */
export function encodeClipboard(message: ClipboardMessage): { flags: number; body: Buffer } {
  switch (message.action) {
    case 'caps': {
      const sizes = Buffer.alloc(4 * message.sizes.length)
      message.sizes.forEach((size, index) => {
        sizes.writeUInt32BE(size, 4 * index)
      })
      return { flags: ACTION.CAPS | message.actions | message.formats, body: sizes }
    }
    case 'provide': {
      const entries = [...message.items].sort(([a], [b]) => a - b)
      const parts = entries.flatMap(([, data]) => {
        const size = Buffer.alloc(4)
        size.writeUInt32BE(data.length)
        return [size, data]
      })
      const formats = entries.reduce((sum, [format]) => sum | format, 0)
      return { flags: ACTION.PROVIDE | formats, body: deflateSync(Buffer.concat(parts)) }
    }
    default:
      return { flags: ACTIONS[message.action] | message.formats, body: Buffer.alloc(0) }
  }
}
