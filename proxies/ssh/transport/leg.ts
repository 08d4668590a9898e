/**
 * One side of a session as the relay sees it: connection-layer messages (RFC 4254, 80 to 127) in and out, back-pressure
 * and an end. An SSH connection is one (transport.ts); so is a target that shows a terminal only (terminal-leg.ts).
 */
import type { Buffer } from 'node:buffer'

export interface Leg {
  /** Called with each message. The callee may rewrite it, and has to copy what it keeps. */
  onMessage: ((payload: Buffer) => void) | undefined
  /** `congested` may have become false. */
  onDrain: (() => void) | undefined
  /** Whether this side may ask for new keys just now; it will ask again. */
  mayRekey: (() => boolean) | undefined
  /** The connection is gone, once. */
  onClosed: (() => void) | undefined
  /** While paused nothing is read from the peer. */
  paused: boolean
  /** More should not be sent: the peer reads too slowly, or keys are being exchanged. */
  readonly congested: boolean
  /** What is queued can only be answers to a peer that asks and does not read them. */
  readonly flooded: boolean
  /** Keys are being exchanged. */
  readonly inKex: boolean
  /** It is gone, or on its way: nothing more is heard of the peer. */
  readonly closed: boolean
  /** Why it has gone, for the user, where that is known. */
  readonly failure?: string | undefined
  /** Nothing can be asked of it any more: all that it had is over, though the connection is still there. */
  readonly isSpent?: boolean
  /** Sends one message; its bytes are copied before this returns. After the end: nothing. */
  send(payload: Uint8Array): void
  /** True when the peer has given a sign of life since the last call. */
  takeHeard(): boolean
  /** New keys when the present ones are old; call it now and then. */
  refreshKeys(now: number): void
  /** Sends what is queued, and closes. */
  close(): void
  destroy(): void
}

/** The client's side of a session. */
export interface ClientLeg extends Leg {
  /** Takes what is to be sent; it goes by `sendNow` later on. */
  onSend: ((payload: Uint8Array) => void) | undefined
  /** As `send`, past `onSend`. */
  sendNow(payload: Uint8Array): void
  /** Bytes for the peer until now, and those among them that its connection has not taken. */
  readonly written: number
  readonly waiting: number
  /** The peer broke the protocol: tells it so and drops the connection. */
  breach(): void
}
