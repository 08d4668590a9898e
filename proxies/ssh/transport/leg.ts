/**
 * One side of a session as the relay sees it: connection-layer messages (RFC 4254, 80 to 127) in and out,
 * back-pressure and an end. Implemented by an SSH connection (transport.ts) and by peers that only have a
 * terminal (../terminal/).
 */
import type { Buffer } from 'node:buffer'

export interface Leg {
  /** Called with each message. The callee may rewrite it, and must copy what it keeps. */
  onMessage: ((payload: Buffer) => void) | undefined
  /** Called when `congested` may have become false. */
  onDrain: (() => void) | undefined
  /** Returns whether this side may start a rekey now; if not, it tries again later. */
  mayRekey: (() => boolean) | undefined
  /** Called once when the connection has closed. */
  onClosed: (() => void) | undefined
  /** While paused, nothing is read from the peer. */
  paused: boolean
  /** Set while nothing more should be sent: the peer reads too slowly, or a key exchange is under way. */
  readonly congested: boolean
  /** Set if the queue is so long that it can only hold replies to a peer that does not read them. */
  readonly flooded: boolean
  /** Set during a key exchange. */
  readonly inKex: boolean
  /** Set if the connection has closed, or is closing: nothing more is received. */
  readonly closed: boolean
  /** Why the connection has closed, for the user; absent if unknown. */
  readonly failure?: string | undefined
  /** Set if all channels have ended and no new ones are possible, though the connection is still open. */
  readonly isSpent?: boolean
  /** Sends one message; copies its bytes. Does nothing after the end. */
  send(payload: Uint8Array): void
  /** Returns true if the peer has sent anything since the last call. */
  takeHeard(): boolean
  /** Starts a rekey if the present keys are old. Call it periodically. */
  refreshKeys(now: number): void
  /** Sends the queue, and closes. */
  close(): void
  destroy(): void
}

/** The client's side of a session. */
export interface ClientLeg extends Leg {
  /** Takes over outgoing messages, which follow later through `sendNow`. */
  onSend: ((payload: Uint8Array) => void) | undefined
  /** Like `send`, but bypasses `onSend`. */
  sendNow(payload: Uint8Array): void
  /** Bytes sent so far, and those of them that the connection has not yet accepted. */
  readonly written: number
  readonly waiting: number
  /** Call when the peer broke the protocol: sends a disconnect message and closes. */
  breach(): void
}
