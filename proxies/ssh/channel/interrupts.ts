/**
 * Keys and requests that interrupt a program while earlier input waits. They are sent ahead, and the input
 * before them is dropped, as a terminal drops unread input (termios, without NOFLSH).
 */
import type { Buffer } from 'node:buffer'
import { buildData } from '../codec/build.ts'
import { dataOf, MSG, parseChannelRequest } from '../codec/messages.ts'

/** ^C, ^Z and ^\. */
const KEYS: readonly number[] = [0x03, 0x1a, 0x1c]
const REQUESTS: readonly string[] = ['signal', 'break']

export interface Interrupt {
  /** Sent at once. */
  now: Buffer
  /** The rest of the message, which stays in the queue. Undefined if there is none. */
  later: Buffer | undefined
}

/**
 * Splits a client's message to channel `id` at its last interrupt. Returns undefined if it has none. Throws
 * MalformedError.
 */
export function interruptIn(payload: Buffer, id: number): Interrupt | undefined {
  if (payload[0] === MSG.channelRequest) {
    const isInterrupt = REQUESTS.includes(parseChannelRequest(payload).type)
    return isInterrupt ? { now: payload, later: undefined } : undefined
  }
  if (payload[0] !== MSG.channelData) return undefined
  const data = dataOf(payload)
  const at = data.findLastIndex((byte) => KEYS.includes(byte))
  if (at < 0) return undefined
  const rest = data.subarray(at + 1)
  return {
    now: buildData(id, data.subarray(at, at + 1)),
    later: rest.length === 0 ? undefined : buildData(id, rest),
  }
}
