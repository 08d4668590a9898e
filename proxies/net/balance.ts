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

/**
 * Each side is read only while the other takes what it sends, and while the recording does (`isFull`); the client also only
 * while what it does may go on (`isHeld`).
 */
export function balance(client: Flow, target: Flow, isFull: boolean, isHeld = false): void {
  target.paused = isFull || client.congested || FLOOD_MARK < target.queued
  client.paused = isFull || isHeld || target.congested || FLOOD_MARK < client.queued
}
