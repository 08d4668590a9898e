/**
 * What a person types to get out of something, while what they type waits: it goes ahead, and what was typed before it is
 * dropped, as a terminal does with what nobody has read yet (termios, without NOFLSH).
 */
import type { Buffer } from 'node:buffer'
import { buildData } from '../codec/build.ts'
import { dataOf, MSG, parseChannelRequest } from '../codec/messages.ts'

/** ^C, ^Z and ^\. */
const KEYS: readonly number[] = [0x03, 0x1a, 0x1c]
const REQUESTS: readonly string[] = ['signal', 'break']

export interface Interrupt {
  /** What goes on now. */
  now: Buffer
  /** What waits in its place, behind it; undefined: nothing. */
  later: Buffer | undefined
}

/** Cuts a message of the client to channel `id`; undefined: there is no interrupt in it. Throws MalformedError. */
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
