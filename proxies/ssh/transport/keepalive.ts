/**
 * Sends keepalives on silent legs, and detects those that no longer reply: a client that vanished without a
 * packet, a target that was switched off. Any SSH peer replies to OpenSSH's `keepalive@openssh.com`, most
 * with a failure.
 */
import { buildGlobalRequest } from '../codec/build.ts'
import type { Leg } from './leg.ts'
import { KEEPALIVE_INTERVAL_MS, KEEPALIVE_MAX_UNANSWERED } from './limits.ts'

export interface WatchedLeg {
  transport: Leg
  onSilent: () => void
  /** Called after a keepalive was sent: a reply will follow. */
  onAsked?: () => void
}

const QUESTION = buildGlobalRequest({
  name: 'keepalive@openssh.com',
  wantReply: true,
  data: new Uint8Array(0),
})

export class Keepalive {
  readonly #legs: (WatchedLeg & { unanswered: number })[]
  readonly #timer: NodeJS.Timeout

  constructor(legs: WatchedLeg[], interval = KEEPALIVE_INTERVAL_MS) {
    this.#legs = legs.map((leg) => ({ ...leg, unanswered: 0 }))
    this.#timer = setInterval(() => this.#tick(), interval)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    for (const leg of this.#legs) {
      leg.transport.refreshKeys(Date.now())
      if (leg.transport.takeHeard()) {
        leg.unanswered = 0
        continue
      }
      // A leg paused by back-pressure is not read, so its silence is not the peer's. It still gets
      // keepalives: only sending shows that a peer has closed whose socket is not read.
      if (!leg.transport.paused && leg.unanswered++ >= KEEPALIVE_MAX_UNANSWERED) leg.onSilent()
      else {
        leg.transport.send(QUESTION)
        leg.onAsked?.()
      }
    }
  }
}
