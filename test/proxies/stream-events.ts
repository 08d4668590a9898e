/** Events of a stream as a list that can be compared, and streams in pieces. */
import { Buffer } from 'node:buffer'

export type Event = [kind: string, ...values: unknown[]]

/** Adds to the list; data after data becomes one event, because the ends of chunks mean nothing. */
export function keep(events: Event[], kind: string, ...values: unknown[]): void {
  const last = events.at(-1)
  if (kind === 'data' && last?.[0] === 'data') last[1] = `${last[1]}${values[0]}`
  else events.push([kind, ...values])
}

export const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** The bytes in pieces that end at these places. */
export function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...ends].map((begin, index) => bytes.subarray(begin, ends[index] ?? bytes.length))
}
