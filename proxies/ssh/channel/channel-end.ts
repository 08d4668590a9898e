/** A channel's end at one peer: the peer's number for it, and how far opening and closing have come there. */
import type { Buffer } from 'node:buffer'
import {
  buildChannelFailure,
  buildChannelOpenFailure,
  buildClose,
  buildWindowAdjust,
} from '../codec/build.ts'
import { type OpenFailureReason, setRecipient } from '../codec/messages.ts'
import type { Leg } from '../transport/leg.ts'
import type { Flow } from './flow.ts'
import { MAX_CHANNEL_PACKET } from './limits.ts'

export class ChannelEnd {
  readonly leg: Leg
  /** What the peer calls the channel; undefined until it has confirmed it. */
  id: number | undefined
  /** The peer knows the bastion's number: it has confirmed the channel, or its own was confirmed. */
  isOpen = false
  /** Bytes of data that the peer takes in one message. */
  maxPacket = MAX_CHANNEL_PACKET
  closedBy = false
  closedTo = false

  constructor(leg: Leg) {
    this.leg = leg
  }

  /** Passes a message of the other side on, readdressed. */
  pass(payload: Buffer): void {
    if (this.closedTo) return
    setRecipient(payload, this.id!)
    this.leg.send(payload)
  }

  /** Grants the peer what the receiver of its data takes by now. */
  grant(flow: Flow, atLeast: number): void {
    // Before it is open there is nobody to tell; opening it makes up for that.
    if (!this.isOpen) return
    const bytes = flow.grant(atLeast)
    if (bytes > 0 && !this.closedTo) this.leg.send(buildWindowAdjust(this.id!, bytes))
  }

  /** Answers the peer's request that goes no further, if it asks for an answer. */
  turnDown(wantReply: boolean): void {
    if (wantReply) this.leg.send(buildChannelFailure(this.id!))
  }

  close(): void {
    if (!this.isOpen || this.closedTo) return
    this.closedTo = true
    this.leg.send(buildClose(this.id!))
  }

  /** Answers the peer's CHANNEL_OPEN with a failure. */
  fail(reason: OpenFailureReason, description: string): void {
    if (this.closedTo) return
    this.leg.send(buildChannelOpenFailure(this.id!, reason, description))
    this.gone()
  }

  /** There is no channel here: it was never opened, or its opening has failed. */
  gone(): void {
    this.closedTo = this.closedBy = true
  }

  get isClosed(): boolean {
    return this.closedBy && this.closedTo
  }
}
