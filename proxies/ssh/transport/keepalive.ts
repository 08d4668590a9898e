/**
 * Asks silent legs for a sign of life, and notices those that no longer give one: a client that vanished
 * without a packet, a target that was switched off. The question is OpenSSH's `keepalive@openssh.com`, which
 * any SSH peer answers, most with a failure.
 */
import { buildGlobalRequest } from '../codec/build.ts'
import type { Leg } from './leg.ts'
import { KEEPALIVE_INTERVAL_MS, KEEPALIVE_MAX_UNANSWERED } from './limits.ts'

export interface WatchedLeg {
  transport: Leg
  onSilent: () => void
  /** It was asked, and will answer. */
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
      // A leg whose sender is held up by back-pressure is not read, and so not heard: that is our doing. It is asked
      // all the same, because only what is sent shows that a peer has closed whose socket is not read.
      if (!leg.transport.paused && leg.unanswered++ >= KEEPALIVE_MAX_UNANSWERED) leg.onSilent()
      else {
        leg.transport.send(QUESTION)
        leg.onAsked?.()
      }
    }
  }
}
