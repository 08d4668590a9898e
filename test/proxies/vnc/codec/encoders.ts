/** Encodes messages of a server that the bastion never sends. */
import { Buffer } from 'node:buffer'
import { encodeClientCutText, encodeClientFence } from '../../../../proxies/vnc/codec/client-encoder.ts'
import { SERVER_MESSAGE } from '../../../../proxies/vnc/codec/server-encoder.ts'

/** Servers have the same messages as viewers, with other types. */
function ofServer(type: number, message: Buffer): Buffer {
  message[0] = type
  return message
}

/** Latin-1. */
export const encodeServerCutText = (text: Uint8Array): Buffer =>
  ofServer(SERVER_MESSAGE.CUT_TEXT, encodeClientCutText(text))

export const encodeServerFence = (flags: number, payload: Uint8Array): Buffer =>
  ofServer(SERVER_MESSAGE.FENCE, encodeClientFence(flags, payload))

export const encodeEndOfContinuousUpdates = (): Buffer => Buffer.of(SERVER_MESSAGE.END_OF_CONTINUOUS_UPDATES)
