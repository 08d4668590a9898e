/** A channel's end at one peer: the peer's number for the channel, and its state of opening and closing. */
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
  /** The peer's number for the channel. Undefined until the peer has confirmed the channel. */
  id: number | undefined
  /** Set once the peer knows the bastion's number, by sending or receiving a confirmation. */
  isOpen = false
  /** Largest number of data bytes that the peer accepts in one message. */
  maxPacket = MAX_CHANNEL_PACKET
  closedBy = false
  closedTo = false

  constructor(leg: Leg) {
    this.leg = leg
  }

  /** Forwards a message of the other peer, with this peer's channel number. */
  pass(payload: Buffer): void {
    if (this.closedTo) return
    setRecipient(payload, this.id!)
    this.leg.send(payload)
  }

  /** Grants the peer as much as the receiver of its data accepts now. */
  grant(flow: Flow, atLeast: number): void {
    // A grant needs an open channel; opening it grants the rest.
    if (!this.isOpen) return
    const bytes = flow.grant(atLeast)
    if (bytes > 0 && !this.closedTo) this.leg.send(buildWindowAdjust(this.id!, bytes))
  }

  /** Refuses a request of the peer that is not forwarded, if it wants a reply. */
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

  /** Marks the channel as absent: it was never opened, or its opening failed. */
  gone(): void {
    this.closedTo = this.closedBy = true
  }

  get isClosed(): boolean {
    return this.closedBy && this.closedTo
  }
}
