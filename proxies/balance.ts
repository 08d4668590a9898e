/** Back-pressure between the two connections of one session. */
import { FLOOD_MARK } from './limits.ts'

export interface Flow {
  /** Nothing is read from the peer. */
  paused: boolean
  /** Bytes wait to be sent to it, so many that nothing should be read that makes more. */
  readonly congested: boolean
  /** Bytes that wait to be sent. */
  readonly queued: number
}

/** Each side is read only while the other takes what it sends, and while the recording does (`isFull`). */
export function balance(client: Flow, target: Flow, isFull: boolean): void {
  target.paused = isFull || client.congested || FLOOD_MARK < target.queued
  client.paused = isFull || target.congested || FLOOD_MARK < client.queued
}
