/** Back-pressure between the two connections of one session. */
import { FLOOD_MARK } from './limits.ts'

export interface Flow {
  /** Set while nothing shall be read from the peer. */
  paused: boolean
  /** True while so many bytes wait to be sent to the peer that nothing should be read that adds more. */
  readonly congested: boolean
  /** Bytes that wait to be sent. */
  readonly queued: number
}

/**
 * Reads each side only while the other accepts data and the recording does (`isFull`). The client is read
 * only while its requests may proceed, too (`isHeld`).
 */
export function balance(client: Flow, target: Flow, isFull: boolean, isHeld = false): void {
  target.paused = isFull || client.congested || FLOOD_MARK < target.queued
  client.paused = isFull || isHeld || target.congested || FLOOD_MARK < client.queued
}
